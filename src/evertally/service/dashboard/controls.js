/** The two switches over the board and over a statistic: how long a window is, and how much of the past is shown. */

import { icon } from "./charts/icons.js";
import { svg } from "./charts/svg.js";
import { element } from "./dom.js";
import { percentWords } from "./promise.js";
import { rangesOf, windowsOf } from "./state.js";
import { shortOf, Switch, words } from "./switches.js";

const keyOf = (one) => String(one.ticks ?? "total");

export class Controls {
  /** `more`: what stands at the end, else the key of the bands. `windowed`: whether windows mean anything. */
  constructor(stream, state, { more = null, windowed = true } = {}) {
    this.state = state;
    const windows = windowsOf(stream);
    const ranges = rangesOf(stream);
    const options = (list) => list.map((one) => ({ key: keyOf(one), content: words(one.words, shortOf(one.words)) }));
    const of = (list, key) => list.find((one) => keyOf(one) === key);
    this.windows = new Switch("Window", options(windows), (key) => state.set({ window: of(windows, key), part: null }));
    this.ranges = new Switch("Shown", options(ranges), (key) => state.set({ range: of(ranges, key), part: null }));
    this.leave = element(
      "button",
      { type: "button", class: "btn leave", hidden: true, onclick: () => state.set({ part: null }) },
      icon("back"),
      "Leave this part",
    );
    this.element = element(
      "div",
      { class: "controls" },
      windowed ? named("Window", this.windows) : null,
      named("Shown", this.ranges),
      this.leave,
      element("span", { class: "grow" }),
      more ?? bandKey(stream.beta),
    );
    this.mark();
  }

  mark() {
    this.windows.mark(keyOf(this.state.window));
    this.ranges.mark(this.state.part ? null : keyOf(this.state.range));
    this.leave.hidden = !this.state.part;
  }
}

const named = (word, choice) =>
  element("span", { class: "choice" }, element("span", { class: "lab", "aria-hidden": "true" }, word), choice.element);

function bandKey(beta) {
  const picture = svg(
    "svg",
    { class: "band-key look-0", viewBox: "0 0 34 16", width: 34, height: 16, "aria-hidden": "true" },
    svg("path", { class: "of-band", d: "M0 4 12 2 22 5 34 2V12L22 15 12 12 0 14Z" }),
    svg("path", { class: "of-line", d: "M0 9 12 7 22 10 34 7" }),
  );
  const told = `Bands and whiskers hold the true number ${percentWords(beta)}`;
  return element("span", { class: "key desk" }, picture, told);
}
