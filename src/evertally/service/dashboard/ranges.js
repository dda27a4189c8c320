/** Which part of the history is shown: the last so many ticks, everything, or a part that was dragged out. */

import { element } from "./dom.js";

const LENGTHS = [
  ["hour", 3600],
  ["day", 86400],
  ["week", 7 * 86400],
  ["month", 30 * 86400],
  ["year", 365 * 86400],
];
const FEW = 20; // ticks: a range that holds fewer is not worth a button

/** What the reader may pick, shortest first: [{name, ticks}], where null means all. */
export function choices(length, horizon) {
  const counts = [100, 1000, 10000].map((ticks) => [`${ticks.toLocaleString("en")} ticks`, ticks]);
  const times = LENGTHS.map(([name, seconds]) => [name, Math.round(seconds / length)]);
  const spans = length === null ? counts : times;
  const useful = spans.filter(([, ticks]) => ticks >= FEW && (horizon === null || ticks < horizon)).slice(0, 3);
  return [...useful.map(([name, ticks]) => ({ name: `Last ${name}`, ticks })), { name: "All", ticks: null }];
}

/** The buttons. `show(window)` gets {ticks} for a range that follows the stream, {first, last} for a fixed one. */
export class Ranges {
  constructor(place, options, show) {
    this.show = show;
    this.chosen = options.at(-1);
    this.back = element(
      "button",
      { type: "button", class: "back", hidden: true, onclick: () => this.reset() },
      "Leave this part",
    );
    this.buttons = options.map((option) =>
      element("button", { type: "button", onclick: () => this.choose(option) }, option.name),
    );
    this.options = options;
    place.replaceChildren(...this.buttons, this.back);
    this.mark(this.chosen);
  }

  choose(option) {
    this.chosen = option;
    this.mark(option);
    this.show({ ticks: option.ticks });
  }

  /** A part of the history, by its ticks; it stays until the reader goes back. */
  zoom(first, last) {
    this.mark(null);
    this.show({ first, last });
  }

  reset() {
    this.choose(this.chosen);
  }

  mark(option) {
    this.back.hidden = option !== null;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(this.options[i] === option)));
  }
}
