/** A small line with its band and no axes: which way it went, and how sure that is. */

import { svg, whenSized } from "./svg.js";

export const sparkline = (box, options) => new Sparkline(box, options);

class Sparkline {
  /** `steady`: a scale that does not blow up noise: never less than 30 % of the value. */
  constructor(box, { steady = false, dot = true } = {}) {
    Object.assign(this, { box, steady, dot });
    box.classList.add("spark");
    box.setAttribute("aria-hidden", "true");
    whenSized(box, () => this.paint());
  }

  draw(points, extent = null) {
    this.points = points.filter((point) => point.value !== null);
    this.extent = extent;
    this.box.classList.toggle("none", this.points.length === 0);
    this.paint();
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!this.points || !width || !height) return;
    if (!this.points.length) return this.box.replaceChildren();
    const ends = this.points.flatMap((point) => [point.value, point.lower ?? point.value, point.upper ?? point.value]);
    let [low, high] = [Math.min(...ends), Math.max(...ends)];
    if (this.steady && high - low < 0.3 * Math.abs(high)) low = high - 0.3 * Math.abs(high);
    if (high === low) [low, high] = [low - 1, high + 1];
    const from = Math.max(this.extent?.from ?? -Infinity, this.points[0].x);
    const to = Math.max(this.extent?.to ?? -Infinity, this.points.at(-1).x);
    const x = (at) => 1 + (to > from ? (at - from) / (to - from) : 1) * (width - 6);
    const y = (value) => 4 + ((high - value) / (high - low)) * (height - 8);
    const path = (points, key) =>
      points.map((point, i) => `${i ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point[key]).toFixed(1)}`).join("");
    const sure = this.points.filter((point) => point.lower !== null);
    const band = `${path(sure, "upper")}${path([...sure].reverse(), "lower").replace("M", "L")}Z`;
    const last = this.points.at(-1);
    this.box.replaceChildren(
      svg(
        "svg",
        { class: "look-0", viewBox: `0 0 ${width} ${height}`, width, height },
        sure.length > 1 ? svg("path", { class: "band", d: band }) : null,
        svg("path", { class: "line", d: path(this.points, "value") }),
        this.dot ? svg("circle", { class: "dot", cx: x(last.x), cy: y(last.value), r: 2.5 }) : null,
      ),
    );
  }
}
