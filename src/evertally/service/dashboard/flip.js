/** Rows that glide to their new places: measured before, measured after, and played from the difference. */

import { arrange, reducedMotion } from "./dom.js";

const MOVE = { duration: 600, easing: "cubic-bezier(0.25, 0.8, 0.25, 1)" };

/** Puts the rows into this order; those that were there before move, new ones fade in. */
export function reorder(parent, rows) {
  const still = reducedMotion() || document.hidden;
  const before = still ? null : new Map([...parent.children].map((row) => [row, row.getBoundingClientRect().top]));
  arrange(parent, rows);
  if (still || before.size === 0) return;
  const tops = rows.map((row) => row.getBoundingClientRect().top); // all measured before anything moves
  rows.forEach((row, i) => {
    if (!before.has(row)) row.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
    else if (Math.abs(before.get(row) - tops[i]) > 1)
      row.animate([{ transform: `translateY(${before.get(row) - tops[i]}px)` }, { transform: "none" }], MOVE);
  });
}
