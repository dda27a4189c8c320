/** Releases of a range as curves: for one label, arrays of values and bounds over time. */

import { isBounded } from "./format.js";

/**
 * The entries of one released query, [{label, value, lower, upper}], in their released order.
 *
 * A single value has the label null. Where nothing was released there are none.
 */
export function entries(columns) {
  if (!columns) return [];
  const { category, value, lower, upper } = columns;
  if (category === null) return [{ label: null, value, lower, upper }];
  return category.map((label, i) => ({ label: String(label), value: value[i], lower: lower[i], upper: upper[i] }));
}

/** One label (null: the single value) of a query through all points; null wherever it was not released. */
export function curve(points, query, label) {
  const made = { value: [], lower: [], upper: [] };
  let place = 0;
  for (const { queries } of points) {
    const columns = queries[query];
    place = columns ? find(columns.category, label, place) : -1;
    const at = (column) => (label === null ? column : column[place]);
    const known = place >= 0 && typeof at(columns.value) === "number";
    const bounded = known && isBounded(at(columns.lower), at(columns.upper));
    made.value.push(known ? at(columns.value) : null);
    made.lower.push(bounded ? at(columns.lower) : null);
    made.upper.push(bounded ? at(columns.upper) : null);
  }
  return made;
}

/** Where a label stands. Mostly it is where it was one release earlier, which saves a search in long lists. */
function find(category, label, before) {
  if (category === null || label === null) return category === label ? 0 : -1;
  return category[before] === label ? before : category.findIndex((one) => String(one) === label);
}
