/** Bars with whiskers, in rows. They start at zero, may go below it, and are hollow where zero cannot be told apart. */

import { element, setText } from "../dom.js";
import { reorder } from "../flip.js";
import { estimate, isBounded, label as safe } from "../format.js";
import { sparkline } from "./spark.js";
import { svg, widthOf } from "./svg.js";

const LONGEST_NAME = 150; // pixels

/** Whether a number is told from zero by its own interval. */
export const isClear = ({ lower, upper }) => isBounded(lower, upper) && (lower > 0 || upper < 0);

/** From values to parts of the width: zero is always on it, and so are all whiskers. */
function barScale(rows) {
  const ends = rows.flatMap(({ value, lower, upper }) => (isBounded(lower, upper) ? [lower, upper, value] : [value]));
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  return (value) => (high > low ? 1 + (98 * (value - low)) / (high - low) : 1);
}

export function hbar({ value, lower, upper, clear }, scale) {
  const at = (number) => `${scale(number).toFixed(2)}%`;
  const width = `${Math.abs(scale(value) - scale(0)).toFixed(2)}%`;
  const made = svg(
    "svg",
    { class: clear ? "hbar look-0" : "hbar hollow look-0", "aria-hidden": "true" },
    svg("rect", { class: "bar", x: at(Math.min(0, value)), y: 6, width, height: 12, rx: 2 }),
    svg("line", { class: "zero", x1: at(0), x2: at(0), y1: 1, y2: 23 }),
  );
  if (!isBounded(lower, upper)) return made;
  const cap = (end) => svg("line", { x1: at(end), x2: at(end), y1: 8.5, y2: 15.5 });
  const whisker = svg("line", { x1: at(lower), x2: at(upper), y1: 12, y2: 12 });
  made.append(svg("g", { class: "whisker" }, whisker, cap(lower), cap(upper)));
  return made;
}

/** A list of rows [{label, name, value, lower, upper, clear, place, tied, note, depth, points}], kept by their labels. */
export class BarList {
  constructor({ words, places = false, sparks = false, pick = null }) {
    Object.assign(this, { places, sparks, pick });
    this.rows = new Map();
    const kind = `bars${places ? " places" : ""}${sparks ? " sparks" : ""}`;
    this.element = element("ul", { class: kind, "aria-label": words });
  }

  draw(rows, { extent = null, found = "" } = {}) {
    const scale = barScale(rows);
    const texts = rows.map((row) => estimate(row.value, row.lower, row.upper));
    const widest = (words, weight) => Math.ceil(Math.max(24, ...words.map((word) => widthOf(word, weight))) * 1.1);
    const names =
      widest(
        rows.map((row) => safe(row.name)),
        600,
      ) +
      10 * Math.max(0, ...rows.map((row) => row.depth ?? 0));
    this.element.style.setProperty("--name", `${Math.min(LONGEST_NAME, names)}px`);
    this.element.style.setProperty(
      "--told",
      `${
        widest(
          texts.map(({ value, error }) => `${value} ${error}`),
          400,
        ) + 2
      }px`,
    );
    for (const label of this.rows.keys()) if (!rows.some((row) => row.label === label)) this.rows.delete(label);
    reorder(
      this.element,
      rows.map((row, i) => this.row(row, texts[i], scale, extent, found)),
    );
  }

  row(row, { value, error }, scale, extent, found) {
    const made = this.rows.get(row.label) ?? this.make(row);
    made.item.className = row.clear ? "row" : "row faint";
    if (row.depth) made.item.dataset.depth = row.depth;
    made.name.replaceChildren(...marked(safe(row.name), found));
    made.name.title = safe(row.name);
    made.bar.replaceChildren(hbar(row, scale));
    setText(made.value, value);
    setText(made.error, error);
    if (made.place) {
      setText(made.place.firstChild, row.place ?? "");
      made.place.classList.toggle("tied", row.tied === true);
    }
    made.note.hidden = !row.note;
    setText(made.note, row.note ?? "");
    made.spark?.draw(row.points ?? [], extent);
    return made.item;
  }

  make(row) {
    const name = element("bdi", { class: "name" });
    const [value, error] = [element("span", { class: "number" }), element("span", { class: "error" })];
    const bar = element("span", { class: "track" });
    const note = element("span", { class: "since", hidden: true });
    const place = this.places ? element("span", { class: "place" }, element("span")) : null;
    const line = this.sparks ? element("span") : null;
    const item = element(
      "li",
      { "data-label": row.label },
      place,
      name,
      bar,
      element("span", { class: "told" }, value, " ", error),
      line,
      note,
    );
    const spark = line && sparkline(line, { steady: true, dot: false });
    const made = { item, name, value, error, bar, place, note, spark };
    this.rows.set(row.label, made);
    return made;
  }
}

/** A name with what was looked for in it marked. */
function marked(name, found) {
  const at = found ? name.toLocaleLowerCase().indexOf(found.toLocaleLowerCase()) : -1;
  if (at < 0) return [name];
  return [name.slice(0, at), element("mark", {}, name.slice(at, at + found.length)), name.slice(at + found.length)];
}
