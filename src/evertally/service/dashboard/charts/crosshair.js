/** Reading a chart: hover, touch or arrow keys show one moment of all lines; a drag looks closer, Esc goes back. */

import { element } from "../dom.js";
import { aloud, instant, label as safe, moment, period, told } from "../format.js";
import { lookKey } from "./look.js";
import { svg } from "./svg.js";

const DRAG = 8; // pixels: less is a click

export class Crosshair {
  constructor(chart, { zoom, back }) {
    Object.assign(this, { chart, zoom, back, at: null, pressed: null });
    this.tip = element("div", { class: "tip", hidden: true });
    this.chosen = element("div", { class: "chosen", hidden: true });
    const { plot } = chart;
    plot.append(this.chosen, this.tip);
    plot.addEventListener("pointermove", (event) => this.move(event));
    plot.addEventListener("pointerdown", (event) => this.press(event));
    plot.addEventListener("pointerup", (event) => this.release(event));
    plot.addEventListener("pointercancel", () => this.drop());
    plot.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && !this.pressed && this.hide());
    plot.addEventListener("blur", () => this.hide());
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("dblclick", () => this.back?.());
  }

  /** The moments that can be read: those of the series with the most points. */
  get base() {
    const series = this.chart.drawn?.series ?? [];
    const known = series.map((one) => one.points.filter((point) => point.value !== null));
    return known.reduce((most, points) => (points.length > most.length ? points : most), []);
  }

  place(event) {
    return event.clientX - this.chart.plot.getBoundingClientRect().left;
  }

  move(event) {
    const at = this.place(event);
    if (this.pressed !== null && Math.abs(at - this.pressed) > DRAG) this.mark(this.pressed, at);
    this.show(this.nearest(at));
  }

  press(event) {
    if (event.pointerType === "touch") return this.show(this.nearest(this.place(event)));
    if (event.button !== 0 || !this.zoom) return;
    this.pressed = this.place(event);
    this.chart.plot.setPointerCapture(event.pointerId);
  }

  release(event) {
    const [from, to] = [this.pressed, this.place(event)].sort((a, b) => a - b);
    const dragged = this.pressed !== null && to - from > DRAG;
    this.drop();
    if (!dragged) return;
    const { left, right, width, from: first, to: last } = this.chart.frame;
    const time = (x) =>
      first + ((Math.min(width - right, Math.max(left, x)) - left) / (width - left - right)) * (last - first);
    this.hide();
    this.zoom(time(from), time(to));
  }

  drop() {
    this.pressed = null;
    this.chosen.hidden = true;
  }

  mark(a, b) {
    this.chosen.hidden = false;
    this.chosen.style.left = `${Math.min(a, b)}px`;
    this.chosen.style.width = `${Math.abs(a - b)}px`;
  }

  nearest(at) {
    const { x } = this.chart.drawn ?? {};
    const { base } = this;
    const away = (point) => Math.abs(x(point.x) - at);
    let best = 0;
    for (let i = 1; i < base.length; i++) if (away(base[i]) < away(base[best])) best = i;
    return best;
  }

  key(event) {
    const last = this.base.length - 1;
    const now = this.base.findIndex((point) => point.x === this.at);
    const to = { ArrowLeft: now < 0 ? last : now - 1, ArrowRight: now < 0 ? 0 : now + 1, Home: 0, End: last }[
      event.key
    ];
    if (event.key === "Escape") {
      if (this.at === null) this.back?.();
      return this.hide();
    }
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(last, to)));
    this.chart.say(this.words());
  }

  hide() {
    this.at = null;
    this.tip.hidden = true;
    this.chart.plot.querySelector(".cross")?.replaceChildren();
  }

  /** The same moment in a chart that was drawn anew. */
  renew() {
    if (this.at === null) return;
    const place = this.base.findIndex((point) => point.x === this.at);
    if (place < 0) this.hide();
    else this.show(place);
  }

  /** What every line says about one moment: the point that stands there, or the window that covers it. */
  readings(at) {
    const covers = ({ x, start, end }) => x === at || (start !== null && instant(start) < at && at <= instant(end));
    return this.chart.drawn.rows.flatMap((row, i) =>
      row
        .map((one) => ({ ...one, place: i, point: one.points.find((point) => point.value !== null && covers(point)) }))
        .filter((one) => one.point),
    );
  }

  show(place) {
    const point = this.base[place];
    if (!point) return;
    this.at = point.x;
    const { x, places } = this.chart.drawn;
    const { top, height, bottom, width } = this.chart.frame;
    const read = this.readings(point.x);
    const line = svg("line", { x1: x(point.x), x2: x(point.x), y1: top, y2: height - bottom });
    const dots = read
      .filter((one) => one.point.x === point.x)
      .map((one) =>
        svg("circle", {
          class: `dot ${one.look.className}`,
          cx: x(point.x),
          cy: places[one.place].y(one.point.value),
          r: 3.5,
        }),
      );
    this.chart.plot.querySelector(".cross").replaceChildren(line, ...dots);
    this.tip.replaceChildren(element("b", {}, when(point)), ...read.map((one) => this.reading(one)));
    this.tip.hidden = false;
    const room = this.tip.offsetWidth;
    const right = x(point.x) + 12;
    const left = right + room > width ? x(point.x) - 12 - room : right;
    this.tip.style.left = `${Math.max(0, Math.min(width - room, left))}px`;
  }

  reading({ name, tip, look, soft, point }) {
    const words = told(point.value, point.lower, point.upper, this.chart.data.unit);
    const shown = tip ?? name;
    return element(
      "span",
      {},
      lookKey(look, soft),
      shown ? element("bdi", {}, `${safe(shown)} `) : null,
      element("b", {}, words),
    );
  }

  words() {
    const point = this.base.find((one) => one.x === this.at);
    const { unit } = this.chart.data;
    const read = this.readings(this.at).map(
      ({ name, point: { value, lower, upper } }) => `${name ? `${safe(name)} ` : ""}${told(value, lower, upper, unit)}`,
    );
    return aloud(`${when(point)}: ${read.join("; ")}`);
  }
}

const when = (point) => (point.start === null || point.total ? moment(point.end) : period(point.start, point.end));
