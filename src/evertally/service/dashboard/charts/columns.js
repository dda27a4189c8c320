/** A histogram of numeric bins: standing bars with whiskers, over an axis that starts at zero. */

import { element } from "../dom.js";
import { aloud, estimate, isBounded, label as safe, number, told } from "../format.js";
import { marginFor } from "./axes.js";
import { valueAxis } from "./scale.js";
import { svg, whenSized, widthOf } from "./svg.js";
import { numbersTable } from "./table.js";

const BOTTOM = 24;

export class Columns {
  constructor(box) {
    this.plot = element("div", { class: "plot", role: "img", tabindex: "0" });
    this.tip = element("div", { class: "tip", hidden: true });
    this.plot.append(this.tip);
    this.spoken = element("p", { class: "unseen", role: "status" });
    box.classList.add("chart");
    box.replaceChildren(this.plot, this.spoken);
    this.plot.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.plot.addEventListener("pointerdown", (event) => this.show(this.under(event)));
    this.plot.addEventListener("pointerleave", () => this.hide());
    this.plot.addEventListener("blur", () => this.hide());
    this.plot.addEventListener("keydown", (event) => this.key(event));
    whenSized(this.plot, () => this.paint());
  }

  /** rows: [{name, value, lower, upper, clear}] in the order of the bins; edges: the numbers between them. */
  draw({ rows, edges, say, caption }) {
    Object.assign(this, { rows, edges, caption });
    this.plot.setAttribute("aria-label", say);
    this.paint();
  }

  table() {
    const rows = this.rows.map((row) => ({ head: safe(row.name), cells: [told(row.value, row.lower, row.upper)] }));
    return numbersTable({ caption: this.caption, heads: ["From, to", "Number"], rows });
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (!this.rows?.length || !width || !height) return;
    const points = this.rows.map(({ value, lower, upper }) =>
      isBounded(lower, upper) ? { value, lower, upper } : { value, lower: null, upper: null },
    );
    const axis = valueAxis(points, { zero: true, count: Math.max(2, Math.round(height / 70)) });
    const left = marginFor(axis.marks.map(({ text }) => text));
    const words = edgeWords(this.edges, this.rows);
    const right = words.at(-1)?.place === this.rows.length ? widthOf(words.at(-1).text) / 2 : 0;
    const each = (width - left - right) / this.rows.length;
    const y = (value) => height - BOTTOM - axis.at(value) * (height - BOTTOM - 8);
    Object.assign(this, { left, each });
    const marks = axis.marks.flatMap(({ value, text }) => [
      svg("line", {
        class: value === 0 ? "rule zero" : "rule",
        x1: left,
        x2: width - right,
        y1: y(value),
        y2: y(value),
      }),
      svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
    ]);
    const columns = this.rows.map((row, i) => column(row, left + i * each, each, y));
    const marked = fitting(words, left, each, width).map(({ at, text }) =>
      svg("text", { x: at, y: height - 6, "text-anchor": "middle" }, text),
    );
    this.plot.querySelector("svg")?.remove();
    this.plot.prepend(
      svg(
        "svg",
        { class: "look-0", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
        svg("g", { class: "axes" }, ...marks, ...marked),
        ...columns,
      ),
    );
  }

  under(event) {
    const place = event.clientX - this.plot.getBoundingClientRect().left - this.left;
    return Math.max(0, Math.min(this.rows.length - 1, Math.floor(place / this.each)));
  }

  key(event) {
    const now = this.at ?? null;
    const last = this.rows.length - 1;
    const to = { ArrowLeft: now === null ? last : now - 1, ArrowRight: now === null ? 0 : now + 1, Home: 0, End: last };
    if (event.key === "Escape") this.hide();
    if (!(event.key in to)) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(last, to[event.key])));
    this.spoken.textContent = aloud(this.tip.textContent);
  }

  show(place) {
    const row = this.rows?.[place];
    if (!row) return;
    this.at = place;
    const { value, error } = estimate(row.value, row.lower, row.upper);
    this.tip.replaceChildren(
      element("b", {}, safe(row.name)),
      element("span", {}, element("b", {}, value), ` ${error}`),
    );
    this.tip.hidden = false;
    const room = this.plot.clientWidth - this.tip.offsetWidth;
    const beside = this.left + (place + 0.5) * this.each - this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.max(0, Math.min(room, beside))}px`;
  }

  hide() {
    this.at = null;
    this.tip.hidden = true;
  }
}

/** The numbers between the bins, by their place (the outer bins may be open), or the names of the bins themselves. */
function edgeWords(edges, rows) {
  if (!edges) return rows.map((row, i) => ({ place: i + 0.5, text: safe(row.name).replace(">=", "≥") }));
  const first = edges.length === rows.length - 1 ? 1 : 0;
  return edges.map((edge, i) => ({ place: first + i, text: number(edge) }));
}

/** As many of these words as stand beside each other. */
function fitting(words, left, each, width) {
  const made = [];
  for (const { place, text } of words) {
    const [at, half] = [left + place * each, widthOf(text) / 2 + 4];
    const before = made.at(-1);
    if (at + half > width + 4 || (before && at - half < before.at + before.half)) continue;
    made.push({ at, half, text });
  }
  return made;
}

function column({ value, lower, upper, clear }, x, each, y) {
  const gap = Math.min(6, each * 0.12);
  const [top, height] = [y(Math.max(0, value)), Math.abs(y(value) - y(0))];
  const bar = svg("rect", { class: "bar", x: x + gap / 2, y: top, width: Math.max(1, each - gap), height, rx: 2 });
  const group = svg("g", { class: clear ? "column" : "column hollow" }, bar);
  if (!isBounded(lower, upper)) return group;
  const [middle, cap] = [x + each / 2, Math.min(4, each / 4)];
  const across = (end) => `M${middle - cap} ${y(end)}h${2 * cap}`;
  const d = `M${middle} ${y(lower)}V${y(upper)}${across(lower)}${across(upper)}`;
  group.append(svg("path", { class: "whisker", d }));
  return group;
}
