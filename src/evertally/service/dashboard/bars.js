/** A histogram: a bar with a whisker for every label, and lines over time for a few of them. */

import { curve, entries } from "./curves.js";
import { element, setText } from "./dom.js";
import { reorder } from "./flip.js";
import { estimate, isBounded, label as safe } from "./format.js";
import { Lines } from "./lines.js";
import { namesOf } from "./names.js";
import { Picks } from "./picks.js";
import { Shortlist } from "./shortlist.js";

export class Bars {
  constructor(query, chart) {
    this.query = query.name;
    this.nameOf = namesOf(query);
    this.rows = new Map();
    this.picks = new Picks();
    this.byValue = false;
    this.lines = new Lines(chart, 260);
    const list = { class: query.card.names ? "bars worded" : "bars", "aria-label": `${query.name} by label` };
    this.list = element("ul", list);
    this.shortlist = new Shortlist(() => this.redraw());
    this.order = element(
      "button",
      { type: "button", class: "small", "aria-pressed": "false", onclick: () => this.turn() },
      "Sort by value",
    );
    this.element = element(
      "div",
      { class: "bar-view" },
      element("div", {}, element("div", { class: "bar-tools" }, this.shortlist.element, this.order), this.list),
      element(
        "div",
        { class: "beside" },
        this.lines.element,
        element("p", { class: "quiet note" }, "Choose bars to see them over time."),
      ),
    );
  }

  turn() {
    this.byValue = !this.byValue;
    this.order.setAttribute("aria-pressed", String(this.byValue));
    this.redraw();
  }

  redraw() {
    if (this.points) this.draw(this.points, this.latest);
  }

  draw(points, latest) {
    Object.assign(this, { points, latest });
    const all = this.entries(latest);
    const ranked = [...all].sort((a, b) => b.value - a.value);
    if (points.length && !this.picks.slots.size) this.picks.follow(ranked.map((entry) => entry.label));
    const shown = this.shortlist.pick(this.byValue ? ranked : all);
    const scale = scaleOf(shown);
    reorder(
      this.list,
      shown.map((entry) => this.row(entry, scale)),
    );
    this.order.hidden = all.length < 2;
    const curves = this.picks
      .labels()
      .map((one) => ({ name: this.nameOf(one), slot: this.picks.slot(one), ...curve(points, this.query, one) }));
    this.lines.draw(points, curves);
  }

  entries(latest) {
    return entries(latest.queries[this.query]).map((entry) => ({ ...entry, shown: this.nameOf(entry.label) }));
  }

  row(entry, scale) {
    if (!this.rows.has(entry.label))
      this.rows.set(
        entry.label,
        makeRow(entry.shown, () => this.toggle(entry.label)),
      );
    const row = this.rows.get(entry.label);
    const { value, error } = estimate(entry.value, entry.lower, entry.upper);
    const slot = this.picks.slot(entry.label);
    const button = row.firstChild;
    button.className = slot === null ? "bar-row" : `bar-row slot-${slot}`;
    button.setAttribute("aria-pressed", String(slot !== null));
    setText(button.querySelector(".number"), value);
    setText(button.querySelector(".error"), error);
    const bounded = isBounded(entry.lower, entry.upper);
    const track = button.querySelector(".track");
    place(track.querySelector(".fill"), scale(Math.min(0, entry.value)), scale(Math.max(0, entry.value)));
    place(
      track.querySelector(".whisker"),
      scale(bounded ? entry.lower : entry.value),
      scale(bounded ? entry.upper : entry.value),
    );
    return row;
  }

  toggle(label) {
    this.picks.toggle(label);
    this.redraw();
  }

  tell(latest) {
    const best = this.entries(latest).sort((a, b) => b.value - a.value).slice(0, 3);
    return best
      .map((entry) => `${safe(entry.shown)} ${estimate(entry.value, entry.lower, entry.upper).value}`)
      .join("; ");
  }
}

function makeRow(label, onclick) {
  const track = element(
    "span",
    { class: "track" },
    element("i", { class: "fill" }),
    element("i", { class: "whisker" }),
  );
  return element(
    "li",
    {},
    element(
      "button",
      { type: "button", onclick },
      element("bdi", { class: "name", title: safe(label) }, safe(label)),
      track,
      element(
        "span",
        { class: "told" },
        element("span", { class: "number" }),
        " ",
        element("span", { class: "error" }),
      ),
    ),
  );
}

/** From values to parts of the width; zero is always on it, and noise makes small counts negative. */
function scaleOf(shown) {
  const ends = shown.flatMap((one) => (isBounded(one.lower, one.upper) ? [one.lower, one.upper] : [one.value]));
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  return (value) => (high > low ? (value - low) / (high - low) : 0);
}

// Through the object model: a style attribute would be refused by the page's own security policy.
function place(node, from, to) {
  node.style.left = `${from * 100}%`;
  node.style.width = `${(to - from) * 100}%`;
}
