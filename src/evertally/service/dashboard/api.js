/** Requests to the service, with the read token of this tab. */

const KEPT = "evertally-token";

/** An answer that says no, with its status and the words of the service. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let token = null;
let ahead = 0; // milliseconds by which the clock of the service is ahead of ours

/** The time as the service has it: countdowns would be wrong on a machine whose clock is. */
export const serviceTime = () => Date.now() + ahead;

/** Takes a token out of the address (#token=...), where it must not stay: addresses are copied and shown. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    history.replaceState(null, "", location.pathname + location.search);
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

/** One GET; raises Refused, or what fetch raises when nobody answers. */
export async function get(path, { headers = {}, signal } = {}) {
  const authorization = hasToken() ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers: { ...headers, ...authorization }, signal, cache: "no-store" });
  const skew = Date.parse(response.headers.get("Date") ?? "") - Date.now();
  if (Math.abs(skew) > 2000) ahead = skew; // a header has full seconds only
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Refused(response.status, String(answer.error ?? `the service answered ${response.status}`));
}

export const getJson = async (path, options) => (await get(path, options)).json();

/** The address of releases: queries, and a range of ticks where there is one. */
export function releasesPath(queries, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  return `v1/releases?${new URLSearchParams([...queries.map((name) => ["query", name]), ...given])}`;
}

/** Saves an answer as a file: a plain link could not carry the token. */
export async function save(path, filename) {
  const address = URL.createObjectURL(await (await get(path)).blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
