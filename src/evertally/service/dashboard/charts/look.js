/** The look of a label belongs to its place in the declared list, for ever: rank and choice never change it. */

import { svg } from "./svg.js";

const COLOURS = 6;
const DASHES = 3;
const found = new Map(); // query -> Map of label to place, where labels are found: in the order of their first release

export function lookAt(place) {
  const colour = place % COLOURS;
  const dash = Math.floor(place / COLOURS) % DASHES;
  return { colour, dash, className: `look-${colour} dash-${dash}` };
}

/** {colour: 0..5, dash: 0..2, className}: 18 looks. */
export function look(query, label) {
  const place = query.labels === null ? foundPlace(query.name, String(label)) : query.labels.indexOf(label);
  return lookAt(Math.max(0, place));
}

function foundPlace(name, label) {
  if (!found.has(name)) found.set(name, new Map());
  const places = found.get(name);
  if (!places.has(label)) places.set(label, places.size);
  return places.get(label);
}

/** Fixes the places of found labels: those that were released first come first. */
export function remember(query, labels) {
  if (query.labels === null) for (const label of labels) foundPlace(query.name, String(label));
}

/** A short line of this look, for legends and lists. */
export function lookKey({ className }, soft = false) {
  const line = svg("line", { x1: 0, x2: 16, y1: 4, y2: 4, class: soft ? "line soft" : "line" });
  return svg("svg", { class: `look-key ${className}`, viewBox: "0 0 16 8", "aria-hidden": "true" }, line);
}
