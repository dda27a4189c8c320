/** The strip under a large chart: all that is published, and which part of it is shown. Its handles move that part. */

import { sparkline } from "./charts/spark.js";
import { element } from "./dom.js";
import { moment } from "./format.js";

const STEP = 0.02; // of the whole, for a press of an arrow key

export class Brush {
  constructor(views, state) {
    Object.assign(this, { views, state });
    this.picture = element("div", { class: "brush-line" });
    this.line = sparkline(this.picture, { dot: false });
    this.part = element("div", { class: "brush-part" });
    this.handles = ["Start of what is shown", "End of what is shown"].map((name, end) =>
      element("div", {
        class: "brush-handle",
        role: "slider",
        tabindex: "0",
        "aria-label": name,
        onkeydown: (event) => this.pressed(event, end),
        onpointerdown: (event) => this.grab(event, end),
      }),
    );
    this.element = element("div", { class: "brush" }, this.picture, this.part, ...this.handles);
    this.part.addEventListener("pointerdown", (event) => this.grab(event, 2));
  }

  draw(points, whole) {
    this.whole = whole;
    this.line.draw(points, whole);
    this.rest();
  }

  /** Where the shown part is, in parts of the whole. */
  ends() {
    const { from, to } = this.views.range();
    const place = (tick) => (this.views.clock.at(tick) - this.whole.from) / (this.whole.to - this.whole.from || 1);
    return [place(from), place(to)];
  }

  rest() {
    this.place(this.ends());
  }

  place([from, to]) {
    this.part.style.left = `${from * 100}%`;
    this.part.style.width = `${Math.max(0, to - from) * 100}%`;
    [from, to].forEach((at, end) => {
      const handle = this.handles[end];
      const time = this.timeAt(at);
      handle.style.left = `${at * 100}%`;
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", "100");
      handle.setAttribute("aria-valuenow", String(Math.round(at * 100)));
      handle.setAttribute("aria-valuetext", time);
    });
  }

  timeAt(place) {
    const { clock } = this.views;
    return moment(clock.written(Math.round(clock.tickAt(this.axis(place)))));
  }

  axis = (place) => this.whole.from + place * (this.whole.to - this.whole.from);

  moved([from, to], end, by) {
    const wide = to - from;
    if (end === 0) return [Math.min(to - 0.01, Math.max(0, from + by)), to];
    if (end === 1) return [from, Math.max(from + 0.01, Math.min(1, to + by))];
    const start = Math.min(1 - wide, Math.max(0, from + by));
    return [start, start + wide];
  }

  show([from, to]) {
    this.views.zoom(this.axis(from), this.axis(to));
    this.rest();
  }

  pressed(event, end) {
    const by = { ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP }[event.key];
    if (event.key === "Escape") this.state.set({ part: null });
    if (!by) return;
    event.preventDefault();
    this.show(this.moved(this.ends(), end, by));
  }

  grab(event, end) {
    event.preventDefault();
    const begun = event.clientX;
    const before = this.ends();
    const { width } = this.element.getBoundingClientRect();
    const target = event.currentTarget;
    const over = new AbortController();
    let now = before;
    target.setPointerCapture(event.pointerId);
    target.addEventListener(
      "pointermove",
      (move) => {
        now = this.moved(before, end, (move.clientX - begun) / width);
        this.place(now);
      },
      { signal: over.signal },
    );
    for (const name of ["pointerup", "pointercancel"])
      target.addEventListener(
        name,
        () => {
          over.abort();
          if (now !== before) this.show(now);
        },
        { signal: over.signal },
      );
  }
}
