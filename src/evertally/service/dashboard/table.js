/** A ranking: labels with their counts, counts by rank, or labels alone. Rows move when the order changes. */

import { curve, entries } from "./curves.js";
import { element, setText } from "./dom.js";
import { reorder } from "./flip.js";
import { estimate, isBounded, label as safe, number } from "./format.js";
import { Lines } from "./lines.js";
import { Picks } from "./picks.js";
import { Shortlist } from "./shortlist.js";
import { leadersOf, Strip } from "./strip.js";

const EMPTY = "Nothing to show yet. A label appears once its noisy count has passed a public threshold.";

export class Table {
  constructor(query, chart) {
    this.query = query;
    this.names = query.card.values === "labels";
    this.rows = new Map();
    this.places = new Map();
    this.picks = new Picks();
    this.shortlist = new Shortlist(() => this.redraw());
    this.body = element("tbody");
    this.empty = element("p", { class: "quiet", hidden: true }, EMPTY);
    this.note = element("p", { class: "quiet note" });
    this.over = this.names ? new Strip() : new Lines(chart);
    this.element = element(
      "div",
      { class: classOf(query) },
      element("div", {}, this.shortlist.element, element("table", {}, headOf(query), this.body), this.empty, this.note),
      this.over.element,
    );
  }

  redraw() {
    if (this.points) this.draw(this.points, this.latest);
  }

  draw(points, latest) {
    Object.assign(this, { points, latest });
    const ranked = this.ranked(latest);
    const led = this.names ? leadersOf(points, this.query.name) : [];
    const best = this.query.card.nested ? [...ranked].sort((a, b) => b.value - a.value) : ranked;
    this.picks.follow([...new Set([...led, ...best].map((entry) => entry.label))]);
    const shown = this.shortlist.pick(ranked);
    const largest = Math.max(1, ...shown.map((entry) => entry.value));
    reorder(
      this.body,
      shown.map((entry) => this.row(entry, largest)),
    );
    if (latest.tick !== this.drawn) this.places = new Map(ranked.map((entry) => [entry.label, entry.rank]));
    this.drawn = latest.tick;
    this.empty.hidden = ranked.length > 0;
    this.body.parentElement.hidden = ranked.length === 0;
    if (this.names) this.drawNames(points, ranked);
    else this.drawLines(points);
  }

  /** The entries with their rank. A row is known by its label; where ranks carry numbers only, by the rank. */
  ranked(latest) {
    const found = entries(latest.queries[this.query.name]);
    if (this.query.card.nested) found.sort((a, b) => compare(beginningOf(a.label), beginningOf(b.label)));
    return found.map((entry, i) => {
      const label = this.names ? String(entry.value) : entry.label;
      return { ...entry, label, value: this.names ? -i : entry.value, rank: i + 1 };
    });
  }

  drawLines(points) {
    const picked = this.picks.labels();
    const curves = picked.map((one) => ({
      name: this.nameOf(one),
      slot: this.picks.slot(one),
      ...curve(points, this.query.name, one),
    }));
    this.over.draw(points, curves);
  }

  drawNames(points, ranked) {
    const bound = Math.ceil(Math.max(...ranked.map((entry) => entry.upper - entry.lower)));
    const words = `A label's count is at most ${number(bound)} away from the count that belongs in its place.`;
    setText(this.note, ranked.every((entry) => isBounded(entry.lower, entry.upper)) ? words : "");
    this.over.draw(points, this.query.name, this.picks);
  }

  nameOf = (label) => (this.query.card.places ? ordinal(Number(label)) : label);

  row(entry, largest) {
    if (!this.rows.has(entry.label)) this.rows.set(entry.label, makeRow(this.nameOf(entry.label), this.names));
    const row = this.rows.get(entry.label);
    const slot = this.picks.slot(entry.label);
    row.className = slot === null ? "" : `slot-${slot}`;
    const moved = (this.places.get(entry.label) ?? entry.rank) - entry.rank;
    if (this.latest.tick !== this.drawn) row.dataset.moved = moved > 0 ? "up" : moved < 0 ? "down" : "";
    setText(row.querySelector(".rank"), String(entry.rank));
    if (this.names) return row;
    const { value, error } = estimate(entry.value, entry.lower, entry.upper);
    setText(row.querySelector(".number"), value);
    setText(row.querySelector(".error"), error);
    row.querySelector(".fill").style.width = `${Math.max(0, (entry.value / largest) * 100)}%`;
    return row;
  }

  tell(latest) {
    return this.ranked(latest)
      .slice(0, 3)
      .map((entry) => `${entry.rank}: ${safe(this.nameOf(entry.label))}`)
      .join("; ");
  }
}

/** Prefixes have no ranks: each holds all that begins with it. */
function classOf({ card, labels }) {
  if (card.nested) return "ranking nested";
  return card.values === "labels" && labels === null ? "ranking alone" : "ranking";
}

const beginningOf = (prefix) => prefix.replace(/\*$/, "");
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function headOf({ card, column }) {
  const label = card.places ? "Place" : (column ?? "Label");
  const titles = card.values === "labels" ? ["Rank", label] : ["Rank", label, "Count", "Error"];
  return element(
    "thead",
    {},
    element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, safe(title)))),
  );
}

function makeRow(name, names) {
  const cell = element("td", { class: "label" }, element("bdi", { class: "name", title: safe(name) }, safe(name)));
  cell.append(
    names ? element("i", { class: "dot" }) : element("span", { class: "track" }, element("i", { class: "fill" })),
  );
  const numbers = names ? [] : [element("td", { class: "number" }), element("td", { class: "error" })];
  return element("tr", {}, element("td", { class: "rank" }), cell, ...numbers);
}

function ordinal(rank) {
  if (rank === 1) return "largest";
  const ending = { one: "st", two: "nd", few: "rd", other: "th" }[
    new Intl.PluralRules("en", { type: "ordinal" }).select(rank)
  ];
  return `${rank}${ending} largest`;
}
