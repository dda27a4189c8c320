/** One number, or a few that belong together (expressions, quantiles of one column): in large type, and as curves. */

import { curve, entries } from "./curves.js";
import { element, setText } from "./dom.js";
import { estimate, label as safe } from "./format.js";
import { Lines } from "./lines.js";

export class Figure {
  /** `parts`: [{query, name}] with the name under which a query's single value is shown (null: alone). */
  constructor(parts, chart) {
    this.parts = parts;
    this.lines = new Lines(chart);
    this.values = element("dl", { class: "values" });
    this.element = element("div", { class: "figure" }, this.values, this.lines.element);
  }

  draw(points, latest) {
    const shown = this.parts.flatMap(({ query, name }) =>
      entries(latest.queries[query]).map((entry) => ({ ...entry, query, name: entry.label ?? name })),
    );
    while (this.values.children.length > shown.length) this.values.lastChild.remove();
    while (this.values.children.length < shown.length) this.values.append(valueBox());
    shown.forEach((entry, i) => fill(this.values.children[i], entry, i, shown.length > 1));
    const curves = shown.map((entry, slot) => ({ name: entry.name, slot, ...curve(points, entry.query, entry.label) }));
    this.lines.draw(points, curves);
  }

  /** The last values, for a screen reader. */
  tell(latest) {
    return this.parts
      .flatMap(({ query, name }) => entries(latest.queries[query]).map((entry) => ({ name, ...entry })))
      .map((entry) => {
        const { value, error } = estimate(entry.value, entry.lower, entry.upper);
        const name = entry.label ?? entry.name;
        return `${name === null ? "" : safe(name)} ${value} ${error.replace("±", "plus or minus")}`.trim();
      })
      .join("; ");
  }
}

const valueBox = () =>
  element("div", {}, element("dt"), element("dd", {}, element("strong"), " ", element("span", { class: "error" })));

function fill(box, entry, slot, several) {
  const { value, error } = estimate(entry.value, entry.lower, entry.upper);
  const title = box.firstChild;
  title.className = several ? `slot-${slot} keyed` : "unseen";
  setText(title, safe(entry.name ?? "value"));
  setText(box.querySelector("strong"), value);
  setText(box.querySelector(".error"), error);
}
