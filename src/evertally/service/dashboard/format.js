/** Numbers, times and labels as people read them. */

// An end that is 2^61 away is no bound: of a partition that ran out of intervals, or where nothing was declared.
const NO_BOUND = 2 ** 60;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number with separators. A fraction gets as many digits as its error leaves meaning for. */
export function number(value, error = null) {
  if (typeof value !== "number") return "–";
  if (Number.isInteger(value) && (error === null || Number.isInteger(error))) return whole.format(value);
  const scale = error > 0 ? error : Math.abs(value) / 1000 || 1;
  const digits = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(scale))));
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const rough = (value) => (typeof value === "number" ? significant.format(value) : "–");
export const short = (value) => (Math.abs(value) < 10000 ? value.toLocaleString("en") : compact.format(value));
export const percent = (part) => `${significant.format(part * 100)} %`;

export const isBounded = (lower, upper) =>
  typeof lower === "number" && typeof upper === "number" && upper - lower < NO_BOUND;

/** "1/4", "0.25" and 0.25 as a number. */
export function fraction(written) {
  const [above, below = 1] = String(written).split("/").map(Number);
  return above / below;
}

/** The value and its interval in words: {value: "412", error: "± 31"}, or a range where the interval is lopsided. */
export function estimate(value, lower, upper) {
  if (typeof value !== "number") return { value: "–", error: "" };
  if (!isBounded(lower, upper)) {
    return { value: number(value), error: isBounded(lower, value) ? `at least ${number(lower)}` : "no bound" };
  }
  const below = value - lower;
  const above = upper - value;
  const width = Math.max(below, above);
  const even = Math.abs(below - above) <= 0.02 * width;
  return {
    value: number(value, width),
    error: even ? `± ${number(width, width)}` : `${number(lower, width)} to ${number(upper, width)}`,
  };
}

/** Where a release stands on the time axis: seconds since 1970, or the integer of an integer clock. */
export const instant = (time) => (typeof time === "number" ? time : Date.parse(time) / 1000);

/** A release's time as it is in the downloads: UTC. */
export function moment(time) {
  if (typeof time === "number") return `time ${whole.format(time)}`;
  return `${time.slice(0, 10)} ${time.slice(11, 19)} UTC`;
}

/** A day, or a moment of it where that is not midnight: what begins there is named by it. */
export function beginning(seconds) {
  const [day, clock] = new Date(seconds * 1000).toISOString().split("T");
  return clock.startsWith("00:00:00") ? day : `${day} ${clock.slice(0, 5)}`;
}

/** A length of time in its two largest units. */
export function duration(seconds) {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return `${rough(seconds)} s`;
  let rest = Math.round(seconds / (units[first + 1]?.[1] ?? 1)) * (units[first + 1]?.[1] ?? 1);
  return units
    .slice(first, first + 2)
    .map(([unit, length]) => {
      const count = Math.floor(rest / length);
      rest -= count * length;
      return count ? `${count} ${unit}` : "";
    })
    .filter(Boolean)
    .join(" ");
}

// Controls, marks that turn the writing direction, and what cannot be seen: shown by their number, as in a terminal.
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** A label that can be trusted to look like what it is. */
export function label(text) {
  const shown = String(text).replace(unseen, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
  return shown.trim() === "" ? `“${shown}”` : shown;
}
