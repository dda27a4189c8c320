/** The budget: what the whole life costs, who gets which part of it, and how much of the life is over. */

import { element, setText } from "./dom.js";
import { fraction, number, percent, rough } from "./format.js";

const SIGNS = { epsilon: "ε", delta: "δ", rho: "ρ" };

export class Gauge {
  constructor(place, stream) {
    this.horizon = stream.horizon;
    this.used = element("i", { class: "fill" });
    this.ticks = element("p", { class: "quiet" });
    const bar = element(
      "div",
      {
        class: "life",
        role: "meter",
        "aria-label": "Ticks released",
        "aria-valuemin": "0",
        "aria-valuemax": String(stream.horizon ?? 0),
      },
      this.used,
    );
    this.bar = stream.horizon === null ? null : bar;
    place.replaceChildren(
      element("h3", {}, "What the whole life costs"),
      element("p", { class: "price" }, ...prices(stream.budget)),
      element(
        "p",
        { class: "quiet" },
        "Set once, for all releases together. Reading more, or longer, costs nothing more.",
      ),
      sharesOf(stream.queries),
      element("p", { class: "quiet" }, `Divided among ${counted(stream.queries.length, "statistic")}.`),
      element("h3", {}, "How much of its life is over"),
      ...(this.bar ? [this.bar] : []),
      this.ticks,
    );
    this.show(stream.released);
  }

  show(tick) {
    if (this.bar === null) {
      setText(this.ticks, `${number(tick)} ticks released. It may go on for ever: the price is the same.`);
      return;
    }
    this.used.style.width = `${(tick / this.horizon) * 100}%`;
    this.bar.setAttribute("aria-valuenow", String(tick));
    setText(
      this.ticks,
      `${number(tick)} of ${number(this.horizon)} ticks released, ${number(this.horizon - tick)} to come`,
    );
  }
}

function prices(budget) {
  return Object.entries(SIGNS)
    .filter(([name]) => typeof budget[name] === "number")
    .map(([name, sign]) => element("span", { title: name }, element("em", {}, sign), " = ", ...written(budget[name])));
}

/** Small numbers as a power of ten: how many zeros there are is the point of them. */
function written(value) {
  if (value >= 1e-3) return [rough(value)];
  const [digits, power] = value.toExponential(1).split("e");
  return [Number(digits) === 1 ? "" : `${Number(digits)} · `, "10", element("sup", {}, power.replace("-", "−"))];
}

const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** One bar, cut into the shares of the queries. */
function sharesOf(queries) {
  const parts = queries.map((query) => {
    const title = `${query.name}: ${percent(fraction(query.share))}`;
    const part = element("span", { title }, element("bdi", {}, query.name));
    part.style.flexGrow = String(fraction(query.share));
    return part;
  });
  const words = `Shares: ${queries.map((query) => `${query.name} ${percent(fraction(query.share))}`).join(", ")}`;
  return element("div", { class: "shares", role: "img", "aria-label": words }, ...parts);
}
