/** Lines over time with their error bands. What is drawn, and what a reader can do with it. */

import { element, setText } from "../dom.js";
import { label as safe } from "../format.js";
import { Crosshair } from "./crosshair.js";
import { axes, endLabels, marginFor } from "./axes.js";
import { crowded } from "./crowded.js";
import { lookKey } from "./look.js";
import { valueAxis } from "./scale.js";
import { hatching, svg, whenSized } from "./svg.js";
import { seriesTable } from "./table.js";

const ENDS_NEED = 380; // pixels of chart: narrower ones have a legend above
const DOTS = 20; // points and more are a line without dots
const MANY = 120; // points and more are a thin line
const LANE = 62; // pixels of a lane, at least
const LONGEST_UNIT = 6; // letters
const MARK_EVERY = 58; // pixels between the marks of the axis of values

export const lineChart = (box, options) => new LineChart(box, options);

class LineChart {
  constructor(box, { zoom = null, back = null } = {}) {
    this.legend = element("p", { class: "legend", hidden: true });
    this.plot = element("div", { class: "plot", role: "img", tabindex: "0" });
    this.spoken = element("p", { class: "unseen", role: "status" });
    box.classList.add("chart");
    box.replaceChildren(this.legend, this.plot, this.spoken);
    this.crosshair = new Crosshair(this, { zoom, back });
    whenSized(this.plot, () => this.paint());
  }

  draw(data) {
    this.data = data;
    this.plot.setAttribute("aria-label", data.say ?? "");
    this.paint();
  }

  clear() {
    this.data = null;
    this.plot.querySelector("svg")?.remove();
  }

  table() {
    return seriesTable(this.data);
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (!this.data || !width || !height) return;
    const { series, extent, zero, log, hatch = [], lanes = true } = this.data;
    const points = series.flatMap((one) => one.points).filter((point) => point.value !== null);
    if (!points.length) return this.plot.querySelector("svg")?.remove();
    const named = series.filter(
      (one) => (one.name ?? null) !== null && one.points.some((point) => point.value !== null),
    );
    const ends = this.data.ends && width >= ENDS_NEED && named.length > 0;
    const split = lanes && crowded(series);
    const rows = split ? series.filter((one) => !one.soft).map((one) => [one]) : [series];
    // More lanes than there is room for make the chart higher; it is painted again then.
    this.plot.style.minHeight = split ? `${LANE * rows.length + 32}px` : "";
    const count = split ? 2 : Math.max(2, Math.round(height / MARK_EVERY));
    const axis = valueAxis(points, { zero, log, count, exact: split });
    withUnit(axis.marks, this.data.unit);
    const from = Math.max(extent?.from ?? -Infinity, Math.min(...points.map((point) => point.x)));
    const newest = Math.max(...series.flatMap((one) => one.points.map((point) => point.x)));
    // Lines reach their names; time that was not heard of is part of the picture.
    const to = hatch.length ? Math.max(extent?.to ?? -Infinity, newest) : newest;
    const left = marginFor(axis.marks.map(({ text }) => text));
    const right = ends ? endLabels.room(named) : 10;
    this.frame = { width, height, left, right, top: 8, bottom: 24, from, to, axis };
    const x = (at) => left + (to > from ? (at - from) / (to - from) : 1) * (width - left - right);
    const places = rows.map((_, i) => this.row(i, rows.length));
    this.drawn = { series, rows, places, x, from, to };
    const hatched = hatching();
    const fields = hatch
      .filter((field) => field.to > from)
      .map((field) => hatchedField(field, x, this.frame, hatched.fill));
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
      hatched.defs,
      axes(this.frame, places, x, this.data.timed !== false),
      ...fields,
      ...rows.flatMap((row, i) => row.map((one) => band(one, x, places[i].y))),
      ...rows.flatMap((row, i) => row.map((one) => line(one, x, places[i].y))),
      ...(ends ? rows.map((row, i) => endLabels(row, places[i], this.frame)) : []),
      svg("g", { class: "cross" }),
    );
    this.plot.querySelector("svg")?.remove();
    this.plot.prepend(picture);
    this.drawLegend(this.data.ends && !ends ? named : []);
    this.crosshair.renew();
  }

  /** One lane: its place, and where a value is in it. */
  row(i, count) {
    const { height, top, bottom, axis } = this.frame;
    const each = (height - top - bottom) / count;
    const from = top + i * each + (i ? 8 : 0);
    const to = top + (i + 1) * each;
    return { from, to, last: i === count - 1, y: (value) => to - axis.at(value) * (to - from) };
  }

  drawLegend(named) {
    this.legend.hidden = named.length === 0;
    const keys = named.map(({ name, sub, look, soft }) =>
      element("span", {}, lookKey(look, soft), element("bdi", {}, safe(name)), sub && element("i", {}, sub)),
    );
    this.legend.replaceChildren(...keys);
  }

  say(words) {
    setText(this.spoken, words);
  }
}

/** The unit stands at the highest mark. */
function withUnit(marks, unit) {
  if (unit && unit.length <= LONGEST_UNIT && marks.length) marks.at(-1).text += `\u00a0${unit}`;
}

/** Neighbours that are known: a line has gaps where nothing is. */
function runs(points, known) {
  const made = [[]];
  for (const point of points) {
    if (known(point)) made.at(-1).push(point);
    else if (made.at(-1).length) made.push([]);
  }
  return made.filter((run) => run.length);
}

const pathOf = (run, x, y, key) =>
  run.map((point, i) => `${i ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point[key]).toFixed(1)}`).join("");

function band({ points, look, soft }, x, y) {
  const group = svg("g", { class: `${look.className} ${soft ? "soft" : ""}` });
  for (const run of runs(points, (point) => point.lower !== null)) {
    const above = pathOf(run, x, y, "upper");
    const below = pathOf([...run].reverse(), x, y, "lower");
    if (run.length === 1) group.append(svg("path", { class: "stem", d: `${above}${below.replace("M", "L")}` }));
    else group.append(svg("path", { class: "band", d: `${above}${below.replace("M", "L")}Z` }));
    if (!soft && run.length > 1) group.append(svg("path", { class: "edge", d: above + pathOf(run, x, y, "lower") }));
  }
  return group;
}

function line({ points, look, soft }, x, y) {
  const known = points.filter((point) => point.value !== null);
  const group = svg("g", { class: `${look.className} ${soft ? "soft" : ""} ${known.length > MANY ? "fine" : ""}` });
  for (const run of runs(points, (point) => point.value !== null))
    group.append(svg("path", { class: "line", d: pathOf(run, x, y, "value") }));
  if (soft || !known.length) return group;
  const dot = (point, r) => svg("circle", { class: "dot", cx: x(point.x), cy: y(point.value), r });
  if (known.length < DOTS) group.append(...known.map((point) => dot(point, 2.2)));
  group.append(dot(known.at(-1), 3));
  return group;
}

function hatchedField({ from, to, words }, x, { top, height, bottom, from: start }, fill) {
  const left = x(Math.max(from, start));
  const width = Math.max(2, x(to) - left);
  const field = svg("rect", { x: left, y: top, width, height: height - top - bottom, fill });
  const text = words && width > 52 ? svg("text", { x: left + 6, y: top + 14 }, words) : null;
  return svg("g", { class: "hatched" }, field, text);
}
