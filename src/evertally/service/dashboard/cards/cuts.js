/** A graph as its cuts: the reader picks vertices, and sees the weight of the edges between them and the rest. */

import { lineChart } from "../charts/line.js";
import { lookAt } from "../charts/look.js";
import { arrange, element, setText } from "../dom.js";
import { aloud, estimate, instant, label as safe, number, told } from "../format.js";
import { Frame } from "./frame.js";

// Standard deviations on either side. A cut adds up the noise of many weights, so the normal law is near, not exact: the
// page says "about"; bounds that hold are those of the library (GraphRelease.cut).
const SURE = 1.96;
const LISTED = 30; // vertices that are shown without a filter
const NOTE =
  "Choose vertices: the number is what runs between them and all others. " +
  "Its ± and its band hold in about 95 of 100 cases, for one choice at one time.";

export class CutsCard {
  constructor(queries, stream, options) {
    [this.query] = queries;
    this.stream = stream;
    this.vertices = this.query.card.vertices;
    this.picked = new Set(this.vertices.slice(0, 1));
    this.needs = { history: true };
    this.frame = new Frame(queries, stream, { ...options, table: () => this.chart.table() });
    Object.assign(this, { element: this.frame.element, title: this.frame.title, span: 8 });
    this.rows = new Map();
    const words = `Find among ${number(this.vertices.length)} vertices`;
    this.filter = element("input", {
      type: "search",
      class: "filter",
      placeholder: words,
      "aria-label": words,
      oninput: () => this.redraw(),
    });
    this.filter.hidden = this.vertices.length <= LISTED;
    this.list = element("ul", { class: "vertices", "aria-label": `Vertices of ${safe(this.title)}` });
    this.said = element("dt");
    this.value = element("b");
    this.error = element("span");
    this.box = element("div");
    this.chart = lineChart(this.box, {
      zoom: (from, to) => this.view?.zoom?.(from, to),
      back: () => this.view?.back?.(),
    });
    this.spoken = element("p", { class: "unseen", role: "status" });
    const values = element(
      "dl",
      { class: "values" },
      element("div", {}, this.said, element("dd", {}, this.value, " ", this.error)),
    );
    this.frame.content.append(
      element(
        "div",
        { class: "cuts" },
        element("div", {}, this.filter, this.list),
        element("div", { class: "beside" }, values, this.box),
      ),
      this.spoken,
    );
  }

  redraw() {
    if (this.view) this.draw(this.view);
  }

  draw(view) {
    this.view = view;
    this.frame.setSub(safe(this.query.description ?? this.query.card.words));
    if (!view.latest?.queries[this.query.name]) return this.frame.nothing(view);
    this.frame.show(true);
    this.drawList(view.latest.queries[this.query.name]);
    const [now] = this.over([view.latest]);
    const { value, error } = estimate(now.value, now.lower, now.upper);
    const cut = this.picked.size % this.vertices.length !== 0; // neither nothing nor everything
    setText(this.said, this.words());
    setText(this.value, cut ? value : "–");
    setText(this.error, cut ? error : "");
    const releases = view.history?.[this.query.name] ?? [view.latest];
    this.chart.draw({
      series: [{ label: null, name: null, tip: this.words(), look: lookAt(0), points: this.over(releases) }],
      extent: view.extent,
      hatch: view.lost ? [{ ...view.lost, words: "no news" }] : [],
      timed: this.stream.clock.tick_seconds !== null,
      say: aloud(`${this.words()}. Last: ${told(now.value, now.lower, now.upper)}`),
    });
    this.frame.setFoot(NOTE);
    this.frame.renew();
  }

  /** The vertices: those picked, and of many those with the largest released weights. */
  drawList(columns) {
    const wanted = this.filter.value.trim().toLocaleLowerCase();
    const degree = this.degrees(columns);
    const places = this.vertices.map((_, i) => i).filter((i) => this.vertices[i].toLocaleLowerCase().includes(wanted));
    const largest = new Set([...places].sort((a, b) => degree[b] - degree[a]).slice(0, LISTED));
    const shown = places.filter((i) => largest.has(i) || (!wanted && this.picked.has(this.vertices[i])));
    arrange(
      this.list,
      shown.map((i) => this.row(this.vertices[i])),
    );
  }

  words() {
    const [k, n] = [this.picked.size, this.vertices.length];
    if (k === 0) return "No vertex is chosen: there is nothing between";
    if (k === n) return "All vertices are chosen: there is nothing between";
    const chosen = k === 1 ? safe([...this.picked][0]) : `${number(k)} of ${number(n)} vertices`;
    return `Between ${chosen} and the rest`;
  }

  row(vertex) {
    if (!this.rows.has(vertex)) {
      const name = element("bdi", {}, safe(vertex));
      const button = element("button", { type: "button", class: "chip", onclick: () => this.toggle(vertex) }, name);
      this.rows.set(vertex, element("li", {}, button));
    }
    const row = this.rows.get(vertex);
    row.firstChild.setAttribute("aria-pressed", String(this.picked.has(vertex)));
    return row;
  }

  toggle(vertex) {
    if (!this.picked.delete(vertex)) this.picked.add(vertex);
    this.redraw();
    setText(this.spoken, this.tell());
  }

  /** The weights of all edges at each vertex, as released: for the order of a long list. */
  degrees(columns) {
    const degree = this.vertices.map(() => 0);
    this.pairs((a, b, i) => {
      degree[a] += columns.value[i];
      degree[b] += columns.value[i];
    });
    return degree;
  }

  /** Every pair of places a < b, with its place among the weights. */
  pairs(visit) {
    let i = 0;
    for (let a = 0; a < this.vertices.length; a++) for (let b = a + 1; b < this.vertices.length; b++) visit(a, b, i++);
  }

  /** The cut at each release, with what its noise amounts to: that of a weight, times the root of how many there are. */
  over(releases) {
    const crossing = [];
    const inside = this.vertices.map((vertex) => this.picked.has(vertex));
    this.pairs((a, b, i) => inside[a] !== inside[b] && crossing.push(i));
    return releases.map(({ tick, time, queries }) => {
      const columns = queries[this.query.name];
      const at = { tick, x: instant(time), start: null, end: time, total: true };
      if (!columns || typeof columns.stddev !== "number") return { ...at, value: null, lower: null, upper: null };
      const value = crossing.reduce((sum, i) => sum + columns.value[i], 0);
      const radius = Math.ceil(SURE * columns.stddev * Math.sqrt(crossing.length));
      return { ...at, value, lower: value - radius, upper: value + radius };
    });
  }

  tell() {
    if (!this.view?.latest || this.picked.size % this.vertices.length === 0) return this.words();
    const [now] = this.over([this.view.latest]);
    return aloud(`${this.words()}: ${told(now.value, now.lower, now.upper)}`);
  }
}
