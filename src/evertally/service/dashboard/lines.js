/** Curves over time with their error bands, drawn by uPlot. */

import { element, setText } from "./dom.js";
import { estimate, label as safe, moment, number, short } from "./format.js";

const { uPlot } = window;
const LOGARITHMIC = 3; // uPlot's number for it
const DASHES = [
  [],
  [8, 5],
  [2, 4],
];
const inUtc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");

/** A colour of the palette, as the theme has it now. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A chart for any number of curves. Dragging calls `zoom(from, to)`, a double click `reset()`. */
export class Lines {
  /** `log`: the axis of the values is one of factors, and all values are above 0. */
  constructor({ zoom, reset, timed }, height = 190, log = false) {
    this.actions = { zoom, reset };
    this.timed = timed;
    this.height = height;
    this.log = log;
    this.points = [];
    this.curves = [];
    this.legend = element("ul", { class: "legend" });
    this.when = element("p", { class: "when" });
    this.canvas = element("div", { class: "plot", role: "img" });
    this.tip = element("figcaption", { class: "tip", hidden: true }, this.when, this.legend);
    this.element = element("figure", { class: "lines" }, this.canvas, this.tip);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    document.addEventListener("themechange", () => this.plot?.redraw(false));
  }

  /** `curves`: [{name, slot, dash, value, lower, upper}]; `slot` is the number of its colour. */
  draw(points, curves) {
    this.points = points;
    const shape = (list) => list.map((curve) => `${curve.slot} ${curve.name}`).join("\n");
    const changed = shape(curves) !== shape(this.curves);
    this.curves = curves;
    const data = [
      points.map((point) => point.x),
      ...curves.flatMap((curve) => [curve.value, curve.lower, curve.upper]),
    ];
    if (!this.plot || changed) this.build(data);
    else this.plot.setData(data);
    this.canvas.setAttribute("aria-label", this.describe());
  }

  build(data) {
    this.plot?.destroy();
    this.legend.replaceChildren(...this.curves.map(legendRow));
    this.plot = new uPlot(this.options(), data, this.canvas);
  }

  options() {
    const axis = {
      stroke: () => colour("--quiet"),
      grid: { stroke: () => colour("--rule"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif",
    };
    return {
      width: Math.max(200, this.canvas.clientWidth),
      height: this.height,
      tzDate: inUtc,
      legend: { show: false },
      padding: [10, 12, 0, 0],
      scales: {
        x: { time: this.timed, range: (plot, low, high) => widened(low, high) },
        ...(this.log ? { y: { distr: LOGARITHMIC, range: (plot, low, high) => stretched(low, high) } } : {}),
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 30,
          space: 70,
          ...(this.timed ? { values: timeMarks } : { values: marks }),
        },
        { ...axis, size: 56, space: 34, values: marks, ...(this.log ? { splits: steps, filter: all } : {}) },
      ],
      series: [{}, ...this.curves.flatMap((curve) => seriesOf(curve))],
      bands: this.curves.map((curve, i) => ({
        series: [3 * i + 3, 3 * i + 2],
        fill: () => colour(`--band-${curve.slot}`),
      })),
      cursor: {
        y: false,
        points: { size: 7, show: (plot, i) => (i % 3 === 1 ? undefined : false) },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.actions.reset() },
      },
      hooks: {
        setCursor: [(plot) => this.read(plot)],
        setSelect: [(plot) => this.select(plot)],
      },
    };
  }

  /** A range was dragged out. Few pixels are a click with a shaky hand. */
  select(plot) {
    const { left, width } = plot.select;
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (width < 8) return;
    this.actions.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  }

  /** A box beside the cursor tells the values under it. */
  read(plot) {
    const { idx, left } = plot.cursor;
    const point = this.points[idx];
    this.tip.hidden = !point || left < 0;
    if (this.tip.hidden) return;
    this.tip.classList.toggle("right", left < plot.bbox.width / devicePixelRatio / 2);
    setText(this.when, `Tick ${number(point.tick)}, ${moment(point.time)}`);
    this.curves.forEach((curve, i) => {
      const told = estimate(curve.value[idx], curve.lower[idx], curve.upper[idx]);
      setText(this.legend.children[i].lastChild, `${told.value} ${told.error}`.trim());
    });
  }

  describe() {
    if (!this.points.length) return "Nothing released yet";
    const ticks = `ticks ${number(this.points[0].tick)} to ${number(this.points.at(-1).tick)}`;
    const count = this.curves.length === 1 ? "One line" : `${this.curves.length} lines`;
    const names = this.curves.filter((curve) => curve.name !== null).map((curve) => safe(curve.name));
    const named = names.length ? ` (${names.join("; ")})` : "";
    return `${count}${named} with error bands, ${ticks}${this.log ? ", on a logarithmic scale" : ""}`;
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
  }
}

function legendRow({ name, slot }) {
  const swatch =
    name === null ? [] : [element("i", { class: `dot slot-${slot}` }), element("bdi", { class: "name" }, safe(name))];
  return element("li", {}, ...swatch, element("span", { class: "read" }));
}

/** The three series of a curve: the line, and the edges that the band is filled between. */
function seriesOf({ slot, dash = 0 }) {
  // A band that is narrow on its scale would be hidden by its line: the edges are drawn too.
  const edge = { stroke: () => `${colour(`--line-${slot}`)}80`, width: 1, points: { show: false } };
  const few = (plot, i, from, to) => to - from < 2; // one value alone is a point
  const line = { stroke: () => colour(`--line-${slot}`), width: 2, dash: DASHES[dash % DASHES.length] };
  return [{ ...line, points: { show: few, size: 6 } }, edge, edge];
}

const widened = (low, high) => (low === null ? [0, 1] : low === high ? [low - 1, high + 1] : [low, high]);
const stretched = (low, high) => (low === null ? [1, 10] : [low / 1.1, high * 1.1]);
const all = (plot, values) => values;

/** Marks of a logarithmic axis: 1, 2, 5, 10, ...; over many decades their powers of ten alone. */
function steps(plot, axis, low, high) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = Array.from({ length: last - first + 1 }, (_, i) => Number(`1e${first + i}`));
  const made = decades.flatMap((ten) => (high / low > 1000 ? [ten] : [ten, 2 * ten, 5 * ten]));
  return made.filter((value) => value >= low && value <= high);
}

const marks = (plot, values) => values.map((value) => (value === null ? "" : short(value)));

/** Clock times within a day, dates beyond; the year where it matters. */
function timeMarks(plot, values, axis, space, step) {
  const form =
    step >= 86400 * 200
      ? { year: "numeric", month: "short" }
      : step >= 86400
        ? { day: "numeric", month: "short" }
        : step >= 60
          ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }
          : { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const written = new Intl.DateTimeFormat("en-GB", { ...form, timeZone: "UTC" });
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return values.map((value) => {
    const date = new Date(value * 1000);
    const midnight = step < 86400 && value % 86400 === 0;
    return midnight ? day.format(date) : written.format(date);
  });
}
