/** Requests to the service, with the read token of this tab. */

const KEPT = "evertally-token";

/** An answer that says no, with its status and the words of the service. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Nobody answered. */
export class Unreachable extends Error {}

let token = null;
let ahead = 0; // milliseconds by which the clock of the service is ahead of ours

/** The time as the service has it: countdowns would be wrong on a machine whose clock is. */
export const serviceTime = () => Date.now() + ahead;

/** Takes a token out of the address (#token=...), where it must not stay: addresses are copied and shown. */
export function takeToken() {
  const shown = new URLSearchParams(location.hash.slice(1));
  const given = shown.get("token");
  if (given !== null) {
    shown.delete("token");
    history.replaceState(null, "", location.pathname + location.search + (shown.size ? `#${shown}` : ""));
    keepToken(given);
  } else {
    token ??= read();
  }
}

export function keepToken(given) {
  token = given;
  try {
    sessionStorage.setItem(KEPT, given);
  } catch {
    // Storage may be switched off: the token then lasts until the page is left.
  }
}

function read() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

export const hasToken = () => token !== null && token !== "";

/** One GET; raises Refused or Unreachable. */
export async function get(path, { headers = {}, signal } = {}) {
  const authorization = hasToken() ? { Authorization: `Bearer ${token}` } : {};
  const asked = fetch(path, { headers: { ...headers, ...authorization }, signal, cache: "no-store" });
  const response = await asked.catch((error) => {
    throw new Unreachable("the service does not answer", { cause: error });
  });
  const skew = Date.parse(response.headers.get("Date") ?? "") - Date.now();
  if (Math.abs(skew) > 2000) ahead = skew; // a header has full seconds only
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Refused(response.status, String(answer.error ?? `the service answered ${response.status}`));
}

export async function getJson(path, options) {
  const response = await get(path, options);
  return response.json().catch((error) => {
    throw new Unreachable("the answer broke off", { cause: error });
  });
}

/** An address with parameters; those without a value are left out, lists are repeated. */
export function pathOf(place, parameters) {
  const given = Object.entries(parameters)
    .flatMap(([name, value]) => (Array.isArray(value) ? value.map((one) => [name, one]) : [[name, value]]))
    .filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `${place}?${new URLSearchParams(given)}`;
}

/** Saves an answer as a file: a plain link could not carry the token. */
export async function save(path, filename) {
  saveBlob(await (await get(path)).blob(), filename);
}

export function saveBlob(blob, filename) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
