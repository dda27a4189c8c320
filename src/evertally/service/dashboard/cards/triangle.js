/** Who came back: a row for each cohort, a column for each age. What is not over yet has no cell. */

import { entries } from "../charts/points.js";
import { element, setText } from "../dom.js";
import { aloud, beginning, estimate, instant, isBounded, label as safe, number } from "../format.js";
import { Frame } from "./frame.js";
import { inWords } from "./words.js";

const CELL = /^cohort (\d+), age (\d+)$/;
const NOTE =
  "The darker a cell, the larger its part of those who came first then. " +
  "Pale cells with a dashed edge cannot be told from zero.";

export class TriangleCard {
  constructor(queries, stream, options) {
    [this.query] = queries;
    this.clock = stream.clock;
    this.period = this.query.card.period;
    this.needs = {}; // the last release has all cells that are over
    this.frame = new Frame(queries, stream, options);
    Object.assign(this, { element: this.frame.element, title: this.frame.title, span: 8 });
    this.rows = new Map();
    this.ages = 0;
    this.head = element("tr", {}, element("th", { scope: "col" }, "Came first"));
    this.body = element("tbody");
    const caption = `A row for each ${inWords(this.period.words)} in which users came first, a column for each later one`;
    const box = {
      class: "scroll",
      tabindex: "0",
      role: "region",
      "aria-label": `${safe(this.title)} by cohort and age`,
    };
    this.frame.content.append(
      element(
        "div",
        box,
        element(
          "table",
          { class: "triangle" },
          element("caption", {}, caption),
          element("thead", {}, this.head),
          this.body,
        ),
      ),
    );
  }

  draw(view) {
    this.frame.setSub(safe(this.query.description ?? this.query.card.words));
    this.cohorts = cohortsOf(entries(view.latest?.queries[this.query.name]));
    if (!this.cohorts.size)
      return this.frame.nothing(view, [
        "Nothing to compare yet",
        `The first row is complete after ${this.period.words}.`,
      ]);
    this.frame.show(true);
    while (this.ages < Math.max(...[...this.cohorts.values()].map((cells) => cells.length))) this.addAge();
    for (const [cohort, cells] of this.cohorts) {
      const row = this.row(cohort);
      cells.forEach((cell, age) => fill(cellAt(row, age), cell, cells[0], age));
    }
    this.frame.setFoot(NOTE);
  }

  addAge() {
    this.head.append(element("th", { scope: "col" }, this.ages === 0 ? "size" : `+ ${number(this.ages)}`));
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
    if (seconds === null) return `Period ${number(cohort)}`;
    return beginning(instant(start) + (cohort - 1) * this.period.ticks * seconds);
  }

  tell() {
    if (!this.cohorts?.size) return "nothing to compare yet";
    const [cohort, cells] = [...this.cohorts].at(-1);
    const { value, error } = estimate(cells[0].value, cells[0].lower, cells[0].upper);
    return aloud(`${number(this.cohorts.size)} rows, the last (${this.nameOf(cohort)}) of ${value} ${error}`);
  }
}

/** cohort -> its cells by age, in their order. */
function cohortsOf(cells) {
  const found = new Map();
  for (const cell of cells) {
    const [, cohort, age] = (CELL.exec(cell.label) ?? []).map(Number);
    if (age === undefined) continue;
    if (!found.has(cohort)) found.set(cohort, []);
    found.get(cohort)[age] = cell;
  }
  return found;
}

function cellAt(row, age) {
  while (row.children.length < age + 2)
    row.append(element("td", {}, element("span", { class: "number" }), " ", element("span", { class: "error" })));
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
  return `${percent(entry.value / size.value)} % of them (${ends} %)`;
}
