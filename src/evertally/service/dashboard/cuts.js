/** A graph as its cuts: the reader picks vertices, and sees the weight of the edges between them and the rest. */

import { element, setText } from "./dom.js";
import { reorder } from "./flip.js";
import { estimate, label as safe, number } from "./format.js";
import { Lines } from "./lines.js";
import { Shortlist } from "./shortlist.js";

// Standard deviations on either side. A cut adds up the noise of many weights, so the normal law is near, not exact: the
// page says "about"; bounds that hold are those of the library (GraphRelease.cut).
const SURE = 1.96;

const NOTE =
  "Choose vertices: the cut is what runs between them and all others. Its ± and its band hold in about 95 % of cases, for one cut at one tick.";

export class Cuts {
  constructor(query, chart) {
    this.query = query.name;
    this.vertices = query.card.vertices;
    this.picked = new Set(this.vertices.slice(0, 1));
    this.rows = new Map();
    this.shortlist = new Shortlist(() => this.redraw(), "vertices");
    this.spoken = element("p", { class: "unseen", role: "status" });
    this.list = element("ul", { class: "vertices", "aria-label": `Vertices of ${query.name}` });
    this.said = element("dt");
    this.told = element("dd", {}, element("strong"), " ", element("span", { class: "error" }));
    this.lines = new Lines(chart);
    this.element = element(
      "div",
      { class: "cuts" },
      element("div", {}, this.shortlist.element, this.list),
      element(
        "div",
        {},
        element("dl", { class: "values" }, element("div", {}, this.said, this.told)),
        this.lines.element,
        element("p", { class: "quiet note" }, NOTE),
        this.spoken,
      ),
    );
  }

  redraw() {
    if (this.points) this.draw(this.points, this.latest);
  }

  draw(points, latest) {
    Object.assign(this, { points, latest });
    const degree = this.degrees(latest.queries[this.query]);
    const rows = this.vertices.map((label, i) => ({ label, value: degree[i] }));
    const shown = this.shortlist.pick(rows, ({ label }) => this.picked.has(label));
    reorder(
      this.list,
      shown.map(({ label }) => this.row(label)),
    );
    const { value, lower, upper } = this.over([latest]);
    const { value: text, error } = estimate(value[0], lower[0], upper[0]);
    const cut = this.picked.size % this.vertices.length !== 0; // neither nothing nor everything
    setText(this.said, this.words());
    setText(this.told.querySelector("strong"), cut ? text : "–");
    setText(this.told.querySelector(".error"), cut ? error : "");
    this.lines.draw(points, [{ name: null, slot: 0, ...this.over(points) }]);
  }

  words() {
    const [k, n] = [this.picked.size, this.vertices.length];
    if (k === 0) return "No vertex is chosen: there is nothing to cut";
    if (k === n) return "All vertices are chosen: there is nothing to cut";
    const chosen = k === 1 ? safe([...this.picked][0]) : `${number(k)} of ${number(n)} vertices`;
    return `Between ${chosen} and the rest`;
  }

  row(vertex) {
    if (!this.rows.has(vertex)) {
      const name = element("bdi", {}, safe(vertex));
      const button = element("button", { type: "button", class: "small", onclick: () => this.toggle(vertex) }, name);
      this.rows.set(vertex, element("li", {}, button));
    }
    const row = this.rows.get(vertex);
    row.firstChild.setAttribute("aria-pressed", String(this.picked.has(vertex)));
    return row;
  }

  toggle(vertex) {
    if (!this.picked.delete(vertex)) this.picked.add(vertex);
    this.redraw();
    if (this.latest) setText(this.spoken, this.tell(this.latest));
  }

  /** The weights of all edges at each vertex, as released: for the order of a long list. */
  degrees(columns) {
    const degree = this.vertices.map(() => 0);
    if (columns)
      this.pairs((a, b, i) => {
        degree[a] += columns.value[i];
        degree[b] += columns.value[i];
      });
    return degree;
  }

  /** Every pair of places a < b, with its place among the weights. */
  pairs(visit) {
    let i = 0;
    for (let a = 0; a < this.vertices.length; a++)
      for (let b = a + 1; b < this.vertices.length; b++) visit(a, b, i++);
  }

  /** The cut at each point, with what its noise amounts to: that of a weight, times the root of how many there are. */
  over(points) {
    const crossing = [];
    const inside = this.vertices.map((vertex) => this.picked.has(vertex));
    this.pairs((a, b, i) => {
      if (inside[a] !== inside[b]) crossing.push(i);
    });
    const made = { value: [], lower: [], upper: [] };
    for (const { queries } of points) {
      const columns = queries[this.query];
      const known = columns && typeof columns.stddev === "number";
      const value = known ? crossing.reduce((sum, i) => sum + columns.value[i], 0) : null;
      const radius = known ? Math.ceil(SURE * columns.stddev * Math.sqrt(crossing.length)) : null;
      made.value.push(value);
      made.lower.push(known ? value - radius : null);
      made.upper.push(known ? value + radius : null);
    }
    return made;
  }

  tell(latest) {
    if (this.picked.size % this.vertices.length === 0) return this.words();
    const { value, lower, upper } = this.over([latest]);
    const { value: text, error } = estimate(value[0], lower[0], upper[0]);
    return `${this.words()}: ${text} ${error.replace("±", "plus or minus")}`.trim();
  }
}
