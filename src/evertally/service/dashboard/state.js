/** What the reader chose, kept in the address after "#": a link shows what its sender saw. */

const WEEK = 7 * 86400;
const FULL = 4; // windows that must fit into what is published before a window is chosen for the reader
export const TOTAL = { ticks: null, seconds: null, words: "Total" };
export const MOST_PICKS = 6;

/** The windows of the switch, the tick first and the total last. */
export const windowsOf = (stream) => [...(stream.windows ?? []), TOTAL];

/** The ranges of the switch; one of them is always there. */
export function rangesOf(stream) {
  const given = stream.ranges ?? [];
  const all = { ticks: null, seconds: null, words: "All" };
  return given.some((range) => range.ticks === stream.horizon) ? given : [...given, all];
}

/** The window of a reader who has not chosen: what the spec says, else the longest up to a week that is full. */
export function usualWindow(stream) {
  const windows = windowsOf(stream);
  const chosen = stream.queries.map((query) => query.window).find((ticks) => ticks);
  const named = windows.find((window) => window.ticks === chosen);
  if (named) return named;
  const out = stream.released || stream.horizon || Infinity;
  const short = windows.filter((one) => one.ticks !== null && (one.seconds ?? 0) <= WEEK);
  return short.findLast((one) => one.ticks * FULL <= out) ?? short[0] ?? TOTAL;
}

/** The shortest range that holds a dozen windows, so that there is a course to be seen. */
export function usualRange(stream, window) {
  const ranges = rangesOf(stream);
  const wanted = 12 * (window.ticks ?? 1);
  return ranges.find((range) => range.ticks !== null && range.ticks >= wanted) ?? ranges.at(-1);
}

const USUAL = { open: null, picks: [], table: false, promise: false, all: false, part: null, search: "" };

export class State {
  constructor(stream) {
    this.stream = stream;
    this.listeners = [];
    this.read();
    addEventListener("popstate", () => this.reread());
    addEventListener("hashchange", () => this.reread());
  }

  /** `listener(changes)` hears the names of what changed. */
  listen(listener) {
    this.listeners.push(listener);
  }

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const byTicks = (list, text) => list.find((one) => String(one.ticks ?? "total") === text);
    this.window = byTicks(windowsOf(this.stream), given.get("window")) ?? usualWindow(this.stream);
    this.range = byTicks(rangesOf(this.stream), given.get("range")) ?? usualRange(this.stream, this.window);
    const known = new Set(this.stream.queries.map((query) => query.name));
    this.open = known.has(given.get("open")) ? given.get("open") : null;
    this.picks = [...new Set(given.getAll("pick"))].slice(0, MOST_PICKS);
    this.search = given.get("search") ?? "";
    this.table = given.has("table");
    this.promise = given.has("promise");
    this.all = given.has("all");
    const part = /^(\d{1,15})-(\d{1,15})$/.exec(given.get("part") ?? "");
    this.part = part && Number(part[1]) < Number(part[2]) ? [Number(part[1]), Number(part[2])] : null;
    this.theme = given.get("theme");
  }

  reread() {
    const before = { ...this };
    this.read();
    this.tell(Object.keys(this).filter((name) => JSON.stringify(this[name]) !== JSON.stringify(before[name])));
  }

  /** Changes what is shown. A step that "back" of the browser takes back: another card; on the board, a switch. */
  set(changes) {
    const changed = Object.keys(changes).filter((name) => this[name] !== changes[name]);
    if (!changed.length) return;
    Object.assign(this, changes);
    const switched = this.open === null && (changed.includes("window") || changed.includes("range"));
    const step = switched || changed.includes("open") ? "pushState" : "replaceState";
    history[step](null, "", this.address());
    this.tell(changed);
  }

  tell(changed) {
    if (changed.length) for (const listener of this.listeners) listener(new Set(changed));
  }

  /** The address of what is shown. What is as usual is left out, except window and range: the usual ones grow. */
  address() {
    const shown = new URLSearchParams();
    shown.set("window", String(this.window.ticks ?? "total"));
    shown.set("range", String(this.range.ticks ?? "total"));
    for (const name of ["open", "search"]) if (this[name]) shown.set(name, this[name]);
    for (const pick of this.picks) shown.append("pick", pick);
    for (const name of ["table", "promise", "all"]) if (this[name] !== USUAL[name]) shown.set(name, "1");
    if (this.part) shown.set("part", this.part.join("-"));
    if (this.theme) shown.set("theme", this.theme);
    return `${location.pathname}${location.search}#${shown}`;
  }
}
