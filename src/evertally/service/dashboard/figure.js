/** One number, or a few that belong together (expressions, quantiles, windows): in large type, and as curves. */

import { curve, entries } from "./curves.js";
import { element, setText } from "./dom.js";
import { estimate, label as safe } from "./format.js";
import { Lines } from "./lines.js";
import { namesOf } from "./names.js";
import { SLOTS } from "./picks.js";

export class Figure {
  /** `parts`: [{query, name}] with the name under which a query's single value is shown (null: alone). */
  constructor(parts, chart, query) {
    this.parts = parts;
    this.nameOf = namesOf(query);
    const log = query.card.scale === "log";
    // Numbers of different units have an axis each; how many there are is known before the first release.
    const charts = query.card.apart ? query.labels.length : 1;
    this.charts = Array.from({ length: charts }, () => new Lines(chart, charts > 1 ? 120 : log ? 240 : 190, log));
    this.values = element("dl", { class: "values" });
    this.element = element("div", { class: "figure" }, this.values, ...this.charts.map((lines) => lines.element));
  }

  draw(points, latest) {
    const shown = this.parts.flatMap(({ query, name }) =>
      entries(latest.queries[query]).map((entry) => ({ ...entry, query, name: this.nameOf(entry.label) ?? name })),
    );
    while (this.values.children.length > shown.length) this.values.lastChild.remove();
    while (this.values.children.length < shown.length) this.values.append(valueBox());
    shown.forEach((entry, i) => fill(this.values.children[i], entry, i, shown.length > 1));
    const curves = shown.map((entry, i) => ({
      name: entry.name,
      slot: i % SLOTS,
      dash: Math.floor(i / SLOTS),
      ...curve(points, entry.query, entry.label),
    }));
    if (this.charts.length === 1) this.charts[0].draw(points, curves);
    else curves.forEach((one, i) => this.charts[i].draw(points, [one]));
  }

  /** The last values, for a screen reader. */
  tell(latest) {
    return this.parts
      .flatMap(({ query, name }) => entries(latest.queries[query]).map((entry) => ({ name, ...entry })))
      .map((entry) => {
        const { value, error } = estimate(entry.value, entry.lower, entry.upper);
        const name = this.nameOf(entry.label) ?? entry.name;
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
  title.className = several ? `slot-${slot % SLOTS} keyed` : "unseen";
  setText(title, safe(entry.name ?? "value"));
  setText(box.querySelector("strong"), value);
  setText(box.querySelector(".error"), error);
}
