/** Numbers, times and labels as people read them. */

// An end that is 2^61 away is no bound: of a partition that ran out of intervals, or where nothing was declared.
const NO_BOUND = 2 ** 60;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY = 86400;
const SPACE = "\u00a0"; // numbers are not torn from their errors and units

const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number with a real minus sign, separators, and this many digits after the point. */
function fixed(value, digits) {
  const shown = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return shown.replace(/^-(0(?:\.0+)?)$/, "$1").replace("-", "−");
}

/** Digits after the point: the error has two digits if it starts with 1 or 2, else one; never rounded to tens. */
function digitsOf(error) {
  if (!(error > 0) || !Number.isFinite(error)) return 0;
  const power = Math.floor(Math.log10(error));
  return Math.min(8, Math.max(0, (error / 10 ** power < 2.95 ? 1 : 0) - power));
}

/** A number with separators. A fraction gets as many digits as its error leaves meaning for. */
export function number(value, error = null) {
  if (typeof value !== "number") return "–";
  if (error !== null) return fixed(value, Number.isInteger(value) && Number.isInteger(error) ? 0 : digitsOf(error));
  return Number.isInteger(value) ? fixed(value, 0) : fixed(value, digitsOf(Math.abs(value) / 100));
}

export const rough = (value) => (typeof value === "number" ? significant.format(value).replace("-", "−") : "–");
export const percent = (part) => `${significant.format(part * 100)}${SPACE}%`;

/** A number beside an axis: 1,000, 10k, 1.2M. `step` is the distance to the next one. */
export function axisNumber(value, step = 1) {
  const needed = [0, 1, 2, 3, 4, 5, 6]; // digits that a step of 0.25 or 2.5 takes to be written out
  const isWhole = (number) => Math.abs(number - Math.round(number)) < 1e-6;
  const digits = (unit) => needed.find((count) => isWhole((step / unit) * 10 ** count)) ?? 6;
  for (const [unit, sign] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ]) {
    const scale = sign === "k" ? 1e3 : unit;
    // 12,025 is not 12.03k: what has more digits is written out.
    if (Math.abs(value) >= unit && digits(scale) <= 2) return `${fixed(value / scale, digits(scale))}${sign}`;
  }
  return fixed(value, value === 0 ? 0 : digits(1));
}

export const isBounded = (lower, upper) =>
  typeof lower === "number" && typeof upper === "number" && upper - lower < NO_BOUND;

/** "1/4", "0.25" and 0.25 as a number. */
export function fraction(written) {
  const [above, below = 1] = String(written).split("/").map(Number);
  return above / below;
}

/** The value and its interval in words: {value: "412", error: "± 31"}, or "35 to 46" where the interval is lopsided. */
export function estimate(value, lower, upper) {
  if (typeof value !== "number") return { value: "–", error: "" };
  if (!isBounded(lower, upper)) {
    return { value: number(value), error: isBounded(lower, value) ? `at least ${number(lower)}` : "no bound" };
  }
  const [below, above] = [value - lower, upper - value];
  const width = Math.max(below, above);
  const even = Math.abs(below - above) <= 0.02 * width || Math.abs(below - above) < 0.5 * 10 ** -digitsOf(width);
  return {
    value: number(value, width),
    error: even ? `±${SPACE}${number(width, width)}` : `${number(lower, width)} to ${number(upper, width)}`,
  };
}

/** The same in one text, for tables and tooltips: "159 ± 8", "39 min (35 to 46)". */
export function told(value, lower, upper, unit = null) {
  const { value: shown, error } = estimate(value, lower, upper);
  const withUnit = unit && shown !== "–" ? `${shown}${SPACE}${unit}` : shown;
  if (!error) return withUnit;
  if (error.startsWith("±")) return unit ? `${shown}${SPACE}${error}${SPACE}${unit}` : `${shown}${SPACE}${error}`;
  return `${withUnit} (${error})`;
}

/** Words for a voice: not every one reads signs. */
export const aloud = (text) => text.replaceAll("±", "plus or minus");

/** How many of something: 1 departure, 2 departures. */
export const plural = (noun, count = 2) =>
  count === 1 || /(s|craft|people)$/.test(noun) ? noun : noun.replace(/([^aeiou])y$/, "$1ie") + "s";

/** Where a release stands on the time axis: seconds since 1970, or the integer of an integer clock. */
export const instant = (time) => (typeof time === "number" ? time : Date.parse(time) / 1000);

let currentYear = new Date().getUTCFullYear();

/** The year in which the last tick began, which times do not repeat: what is out on New Year is about the year before. */
export function setYear(time, tick = 0) {
  if (typeof time === "string") currentYear = new Date((instant(time) - tick) * 1000).getUTCFullYear();
}

const withYear = (date) => (date.getUTCFullYear() === currentYear ? "" : ` ${date.getUTCFullYear()}`);
const clockOf = (date) => date.toISOString().slice(11, date.getUTCSeconds() || date.getUTCMilliseconds() ? 19 : 16);

/** "5 Dec", of seconds since 1970; with its year if that is not the stream's. */
export function dayAndMonth(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${withYear(date)}`;
}

export const monthOf = (seconds) => MONTHS[new Date(seconds * 1000).getUTCMonth()];
export const timeOfDay = (seconds) => clockOf(new Date(seconds * 1000));

/** "6 Dec 05:00 UTC", of a time as it is in answers; on a clock of integers "time 1,030". */
export function moment(time) {
  if (typeof time === "number") return `time ${number(time)}`;
  const seconds = instant(time);
  return `${dayAndMonth(seconds)} ${timeOfDay(seconds)} UTC`;
}

/** A window by what it covers: one day by its name, several by both ends, hours by their times. */
export function period(start, end) {
  if (typeof start === "number") return `${number(start)} to ${number(end)}`;
  const [from, to] = [instant(start), instant(end)];
  const days = (to - from) / DAY;
  if (days === 1) return dayAndMonth(from);
  if (Number.isInteger(days)) return `${dayAndMonth(from)} to ${dayAndMonth(to - DAY)}`;
  const same = new Date(from * 1000).getUTCDate() === new Date(to * 1000).getUTCDate() && to - from < DAY;
  const until = same || to - from < DAY ? timeOfDay(to) : `${dayAndMonth(to)} ${timeOfDay(to)}`;
  return `${dayAndMonth(from)} ${timeOfDay(from)} to ${until}`;
}

/** A day, or a moment of it where that is not midnight: what begins there is named by it. */
export function beginning(seconds) {
  const clock = timeOfDay(seconds);
  return clock === "00:00" ? dayAndMonth(seconds) : `${dayAndMonth(seconds)} ${clock}`;
}

/** A length of time in its two largest units. */
export function duration(seconds) {
  const units = [
    ["d", DAY],
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
