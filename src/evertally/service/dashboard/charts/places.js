/** Places with ties: no order is shown that the noise could have made. */

import { isBounded } from "../format.js";

const radius = ({ lower, upper }) => (isBounded(lower, upper) ? (upper - lower) / 2 : Infinity);

/** Two labels are told apart when they differ by more than the error of their difference: root of the sum of squares. */
export const toldApart = (a, b) => Math.abs(a.value - b.value) > Math.hypot(radius(a), radius(b));

/** The rows with `place`: "3", or "2–4" where it may be any of these, and `tied`: not told from the next row. */
export function withPlaces(rows) {
  return rows.map((row, i) => {
    const above = rows.filter((other) => other.value > row.value && toldApart(row, other)).length;
    const below = rows.filter((other) => other.value < row.value && toldApart(row, other)).length;
    return {
      ...row,
      place: placeWords(1 + above, rows.length - below),
      tied: i + 1 < rows.length && !toldApart(row, rows[i + 1]),
    };
  });
}

export const placeWords = (from, to) => (from === to ? String(from) : `${from}–${to}`);

/** Keeps an order while it may be right: rows change places only when the difference is clear. */
export class SteadyOrder {
  constructor() {
    this.labels = [];
    this.of = null;
  }

  /** The rows in order. `about`: what the numbers are (the window); another one begins anew. */
  order(rows, about) {
    const sorted = [...rows].sort((a, b) => b.value - a.value);
    if (about !== this.of) this.labels = [];
    this.of = about;
    const before = new Map(this.labels.map((label, i) => [label, i]));
    const known = sorted.filter((row) => before.has(row.label));
    const left = known.sort((a, b) => before.get(a.label) - before.get(b.label));
    const made = [];
    while (left.length) {
      const next = left.findIndex((row) => !left.some((other) => other.value > row.value && toldApart(other, row)));
      made.push(...left.splice(next, 1));
    }
    for (const row of sorted.filter((one) => !before.has(one.label))) {
      const place = made.findIndex((other) => other.value < row.value);
      made.splice(place < 0 ? made.length : place, 0, row);
    }
    this.labels = made.map((row) => row.label);
    return made;
  }
}
