/** From answers of the service to points of a chart: {x, value, lower, upper, start, end, stddev}. */

import { instant, isBounded } from "../format.js";

/** One label of a v1/windows answer, by its place among the labels; values are null where nothing is known. */
export function pointsOf(answer, place = 0) {
  if (!answer) return [];
  const total = isTotal(answer);
  return answer.tick.map((tick, i) => ({
    tick,
    // In the middle of its window: at its end, a day would stand over the name of the next one.
    x: total ? instant(answer.end[i]) : (instant(answer.start[i]) + instant(answer.end[i])) / 2,
    start: answer.start[i],
    end: answer.end[i],
    stddev: answer.stddev[i],
    total,
    ...interval(answer.value[place]?.[i], answer.lower[place]?.[i], answer.upper[place]?.[i]),
  }));
}

/** Whether the numbers are running totals: their windows all begin at the start. */
export const isTotal = ({ window }) => window === null;

/** The labels of an answer; [null] where it is one number. */
export const labelsOf = (answer) => answer?.labels ?? [null];

/** One label (null: the single value) of a statistic without windows, through its releases. */
export function historyOf(releases, name, label) {
  let place = 0;
  return releases.map(({ tick, time, queries }) => {
    const columns = queries[name];
    place = columns ? find(columns.category, label, place) : -1;
    const at = (column) => (place < 0 ? null : label === null ? column : column[place]);
    const known = columns ? interval(at(columns.value), at(columns.lower), at(columns.upper)) : interval(null);
    return { tick, x: instant(time), start: null, end: time, stddev: columns?.stddev ?? null, total: true, ...known };
  });
}

/** The entries of one released query, [{label, value, lower, upper}], in their released order; one value: label null. */
export function entries(columns) {
  if (!columns) return [];
  const { category, value, lower, upper, stddev } = columns;
  if (category === null) return [{ label: null, value, lower, upper, stddev }];
  return category.map((label, i) => ({
    label: String(label),
    value: value[i],
    lower: lower[i],
    upper: upper[i],
    stddev,
  }));
}

/** The last window of every label: [{label, value, lower, upper, stddev}]. */
export function lastOf(answer) {
  const i = answer ? answer.tick.length - 1 : -1;
  if (i < 0) return [];
  const at = (columns, place) => columns[place]?.[i] ?? null;
  return labelsOf(answer).map((label, place) => ({
    label,
    value: at(answer.value, place),
    lower: at(answer.lower, place),
    upper: at(answer.upper, place),
    stddev: answer.stddev[i],
  }));
}

function interval(value, lower, upper) {
  if (typeof value !== "number") return { value: null, lower: null, upper: null };
  return isBounded(lower, upper) ? { value, lower, upper } : { value, lower: null, upper: null };
}

/** Where a label stands. Mostly it is where it was one release earlier, which saves a search in long lists. */
function find(category, label, before) {
  if (category === null || label === null) return category === label ? 0 : -1;
  return String(category[before]) === label ? before : category.findIndex((one) => String(one) === label);
}
