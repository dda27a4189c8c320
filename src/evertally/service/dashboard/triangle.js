/** Retention: a row for each cohort, a column for each age. What is not over yet has no cell. */

import { entries } from "./curves.js";
import { element, setText } from "./dom.js";
import { beginning, estimate, instant, isBounded, number } from "./format.js";

const CELL = /^cohort (\d+), age (\d+)$/;
const NOTE =
  "The darker a cell, the larger its part of the cohort. Pale cells with a dashed edge cannot be told from zero.";

export class Triangle {
  /** Every release has all cells that are over: nothing but the last one is needed. */
  needsNoHistory = true;

  constructor(query, clock) {
    this.query = query.name;
    this.clock = clock;
    this.period = query.card.period.ticks;
    this.rows = new Map();
    this.ages = 0;
    this.head = element("tr", {}, element("th", { scope: "col" }, "First active"));
    this.body = element("tbody");
    this.empty = element("p", { class: "quiet" }, `The first cohort is complete after ${query.card.period.words}.`);
    const caption = `A row for each period of ${query.card.period.words} in which users came first, a column for each later`;
    this.table = element(
      "table",
      { hidden: true },
      element("caption", { class: "quiet note" }, caption),
      element("thead", {}, this.head),
      this.body,
    );
    const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": `${query.name} by cohort and age` };
    this.element = element(
      "div",
      { class: "triangle" },
      element("div", box, this.table),
      this.empty,
      element("p", { class: "quiet note" }, NOTE),
    );
  }

  draw(points, latest) {
    const cohorts = this.cohorts(latest);
    this.table.hidden = cohorts.size === 0;
    this.empty.hidden = cohorts.size > 0;
    while (this.ages < Math.max(0, ...[...cohorts.values()].map((cells) => cells.length))) this.addAge();
    for (const [cohort, cells] of cohorts) {
      const row = this.row(cohort);
      cells.forEach((cell, age) => fill(cellAt(row, age), cell, cells[0], age));
    }
  }

  /** cohort -> its cells by age, in their order. */
  cohorts(latest) {
    const found = new Map();
    for (const entry of entries(latest.queries[this.query])) {
      const [, cohort, age] = (CELL.exec(entry.label) ?? []).map(Number);
      if (age === undefined) continue;
      if (!found.has(cohort)) found.set(cohort, []);
      found.get(cohort)[age] = entry;
    }
    return found;
  }

  addAge() {
    const words = this.ages === 0 ? "size" : `+ ${number(this.ages)}`;
    this.head.append(element("th", { scope: "col" }, words));
    this.ages += 1;
  }

  row(cohort) {
    if (!this.rows.has(cohort)) {
      const row = element("tr", {}, element("th", { scope: "row" }, this.nameOf(cohort)));
      this.rows.set(cohort, row);
      this.body.append(row);
    }
    return this.rows.get(cohort);
  }

  /** A cohort is named by when its period began. */
  nameOf(cohort) {
    const { start, tick_seconds: seconds } = this.clock;
    if (seconds === null) return `Cohort ${number(cohort)}`;
    return beginning(instant(start) + (cohort - 1) * this.period * seconds);
  }

  tell(latest) {
    const cohorts = this.cohorts(latest);
    if (cohorts.size === 0) return "no cohort is complete yet";
    const [cohort, cells] = [...cohorts].at(-1);
    const { value, error } = estimate(cells[0].value, cells[0].lower, cells[0].upper);
    return `${number(cohorts.size)} cohorts, the last (${this.nameOf(cohort)}) of ${value} ${error.replace("±", "plus or minus")}`;
  }
}

function cellAt(row, age) {
  while (row.children.length < age + 2)
    row.append(
      element("td", {}, element("span", { class: "number" }), " ", element("span", { class: "error" })),
    );
  return row.children[age + 1];
}

function fill(cell, entry, size, age) {
  const { value, error } = estimate(entry.value, entry.lower, entry.upper);
  setText(cell.querySelector(".number"), value);
  setText(cell.querySelector(".error"), error);
  const clear = isBounded(entry.lower, entry.upper) && entry.lower > 0;
  const part = clear && size.lower > 0 ? Math.min(1, entry.value / size.value) : 0;
  cell.className = clear ? "" : "unclear";
  cell.style.setProperty("--part", `${Math.round(part * 100)}%`);
  if (age > 0 && clear && size.lower > 0) cell.title = partOf(entry, size);
}

/** The part of a cohort, from the two released numbers; where both are in their intervals, so is it. */
function partOf(entry, size) {
  const percent = (part) => Math.min(100, Math.round(100 * part));
  const ends = `${percent(entry.lower / size.upper)} to ${percent(entry.upper / size.lower)}`;
  return `${percent(entry.value / size.value)} % of the cohort (${ends} %)`;
}
