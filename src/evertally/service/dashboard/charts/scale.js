/** Scales: from numbers and times to places, and where the marks of an axis are. */

import { axisNumber, monthOf, timeOfDay } from "../format.js";

const ZERO_IS_NEAR = 0.3; // of the top: an axis that would start lower than this starts at zero
const DAY = 86400;

/** Round numbers from low to high, about so many of them, and their distance. */
function roundNumbers(low, high, count) {
  const raw = (high - low || 1) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * (1 - 1e-9)) * power;
  const made = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) made.push(i * step);
  return { step, marks: made };
}

/**
 * The axis of values. It covers the bands; it begins at zero when that is near, and never cuts what is negative.
 *
 * {low, high, marks: [{value, text}], at(value) -> 0 (bottom) to 1 (top)}
 */
export function valueAxis(points, { zero = false, log = false, count = 4, exact = false } = {}) {
  const ends = points.flatMap(({ value, lower, upper }) => [value, lower, upper]).filter((end) => end !== null);
  if (log && ends.some((end) => end > 0)) return logAxis(ends.filter((end) => end > 0));
  let low = ends.length ? Math.min(...ends) : 0;
  let high = ends.length ? Math.max(...ends) : 1;
  if (zero || (low > 0 && low < ZERO_IS_NEAR * high)) low = Math.min(0, low);
  if (zero) high = Math.max(0, high);
  if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const { step, marks } = roundNumbers(low, high, count);
  if (!exact) {
    // A mark close below the lowest end gives the eye a line to stand on.
    if (low !== 0 && low - Math.floor(low / step) * step < 0.4 * step) low = Math.floor(low / step) * step;
    if (Math.ceil(high / step) * step - high < 0.25 * step) high = Math.ceil(high / step) * step;
  }
  const shown = roundNumbers(low, high, count).step === step ? roundNumbers(low, high, count).marks : marks;
  return {
    low,
    high,
    marks: shown
      .filter((mark) => mark >= low && mark <= high)
      .map((value) => ({ value, text: axisNumber(value, step) })),
    at: (value) => (value - low) / (high - low),
  };
}

function logAxis(ends) {
  const low = Math.min(...ends);
  const high = Math.max(...ends, low * 1.5);
  const marks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10)
    for (const factor of high / low > 1000 ? [1] : [1, 2, 5])
      if (power * factor >= low * 0.999 && power * factor <= high * 1.001) marks.push(power * factor);
  const at = (value) => Math.log(Math.max(value, low) / low) / Math.log(high / low);
  return { low, high, log: true, marks: marks.map((value) => ({ value, text: axisNumber(value, value) })), at };
}

const utc = (seconds) => new Date(seconds * 1000);
const dated = (seconds) => `${utc(seconds).getUTCDate()} ${monthOf(seconds)}`;
const clock = (seconds) => (seconds % DAY === 0 ? dated(seconds) : timeOfDay(seconds));
const yearly = (seconds) =>
  utc(seconds).getUTCMonth() === 0 ? String(utc(seconds).getUTCFullYear()) : monthOf(seconds);

/** Steps of a time axis, the finest first: [seconds between candidates, which of them, their text]. */
const STEPS = [
  ...[1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200].map((step) => [step, () => true, clock]),
  [DAY, () => true, dated],
  [DAY, (date) => date.getUTCDate() % 2 === 1 && date.getUTCDate() < 30, dated],
  [DAY, (date) => date.getUTCDay() === 1, dated],
  [DAY, (date) => [1, 15].includes(date.getUTCDate()), dated],
  [DAY, (date) => date.getUTCDate() === 1, dated],
  [DAY, (date) => date.getUTCDate() === 1, monthOf],
  [DAY, (date) => date.getUTCDate() === 1 && date.getUTCMonth() % 3 === 0, yearly],
  [DAY, (date) => date.getUTCDate() === 1 && date.getUTCMonth() === 0, yearly],
];

/** Marks of the time axis [{x, text}], as many as fit: `room(text)` is the part of the width that a text needs. */
export function timeMarks(from, to, timed, room) {
  if (!timed) return numberMarks(from, to, room);
  const length = to - from;
  for (const [step, wanted, words] of STEPS) {
    if (length / step > 4000) continue;
    const marks = [];
    for (let x = Math.ceil(from / step) * step; x <= to; x += step)
      if (wanted(utc(x))) marks.push({ x, text: words(x) });
    const apart = marks.slice(1).map((mark, i) => mark.x - marks[i].x);
    const widest = Math.max(0, ...marks.map(({ text }) => room(text)));
    // Months of a year are called by their names alone, once there are too many for their days.
    if (!apart.length || Math.min(...apart) / length >= widest) return marks;
  }
  return [];
}

function numberMarks(from, to, room) {
  for (let count = 8; count > 0; count--) {
    const { step, marks } = roundNumbers(from, to, count);
    const shown = marks.map((x) => ({ x, text: axisNumber(x, step) }));
    if (step / (to - from || 1) >= Math.max(0, ...shown.map(({ text }) => room(text)))) return shown;
  }
  return [];
}
