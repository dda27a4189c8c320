/** Numbers by label: a few labels as lines, more of them as bars with whiskers, numeric bins as standing bars. */

import { Columns } from "../charts/columns.js";
import { BarList, isClear } from "../charts/hbar.js";
import { lineChart } from "../charts/line.js";
import { look } from "../charts/look.js";
import { SteadyOrder } from "../charts/places.js";
import { isTotal } from "../charts/points.js";
import { numbersTable } from "../charts/table.js";
import { element } from "../dom.js";
import { aloud, estimate, label as safe, told } from "../format.js";
import { Frame } from "./frame.js";
import { areOrdered, namesOf } from "./names.js";
import { numbersOf } from "./numbers.js";
import { inWords, lastWords, plainWords, sinceWords, underTitle, unitWords } from "./words.js";

const AS_LINES = 4; // labels, at most: more lines than these are told apart by nobody
const ON_THE_BOARD = 20; // rows; a page of its own has all
const NAMED_HOLLOW = 6; // labels that a foot names

/** What all cards of labels have: their numbers, what they are called, and what is said of them. */
export class LabelsCard {
  constructor(queries, stream, options, needs) {
    [this.query] = queries;
    this.stream = stream;
    const windowed = this.query.differences;
    this.needs = { windows: windowed, history: !windowed, exactness: true, ...needs };
    this.nameOf = namesOf(this.query);
    this.frame = new Frame(queries, stream, { ...options, table: () => this.table() });
    Object.assign(this, { element: this.frame.element, title: this.frame.title, span: 4 });
  }

  draw(view) {
    this.view = view;
    this.numbers = this.numbersOf(view);
    this.frame.setSub(this.words(view));
    const known = (this.numbers?.last ?? []).filter((entry) => entry.value !== null);
    if (!known.length) return this.frame.nothing(view, this.nothing(view));
    this.frame.show(true);
    this.drawn = known.map((entry) => ({ ...entry, name: this.nameOf(entry.label), clear: isClear(entry) }));
    this.paint(view);
    this.frame.renew();
  }

  nothing() {
    return undefined;
  }

  numbersOf(view) {
    return numbersOf(this.query, view);
  }

  /** The answer whose windows are shown; null for a statistic without windows. */
  answerOf(view) {
    return this.query.differences ? view.series?.[this.query.name] : null;
  }

  /** What the numbers are: "per day, last 7 days". */
  words(view) {
    const { query, stream } = this;
    const answer = this.answerOf(view);
    const called = safe(plainWords(query, stream));
    if (!answer || answer.tick.length === 0) return query.description ?? called;
    return underTitle(query, called, this.unit(answer));
  }

  unit(answer) {
    if (isTotal(answer)) return sinceWords(answer);
    const last = lastWords(answer.window.words);
    return answer.per ? `per ${inWords(answer.per.words)}, ${last}` : `in the ${last}`;
  }

  table() {
    const rows = this.drawn.map((row) => ({
      head: safe(row.name),
      cells: [told(row.value, row.lower, row.upper, this.query.unit)],
    }));
    return numbersTable({
      caption: `${this.title}, ${this.words(this.view)}`,
      heads: [this.query.column ?? "Label", "Number"],
      rows,
    });
  }

  tell() {
    const best = [...(this.drawn ?? [])].sort((a, b) => b.value - a.value).slice(0, 3);
    return aloud(best.map((row) => `${safe(row.name)} ${told(row.value, row.lower, row.upper)}`).join("; "));
  }
}

/** Up to four labels: lines, or lanes where their bands lie on each other. */
class FewLabelsCard extends LabelsCard {
  constructor(queries, stream, options) {
    super(queries, stream, options);
    this.box = element("div");
    this.chart = lineChart(this.box, {
      zoom: (from, to) => this.view?.zoom?.(from, to),
      back: () => this.view?.back?.(),
    });
    this.frame.content.append(this.box);
  }

  unit(answer) {
    return unitWords(answer);
  }

  paint(view) {
    const series = this.drawn.map((row) => ({
      label: row.label,
      name: row.name,
      look: look(this.query, row.label),
      sub: subOf(row),
      points: this.numbers.points(row.label),
    }));
    this.chart.draw({
      series,
      extent: view.extent,
      ends: true,
      unit: this.query.unit ?? null,
      hatch: view.lost ? [{ ...view.lost, words: "no news" }] : [],
      timed: this.stream.clock.tick_seconds !== null,
      say: `${safe(this.title)}, ${this.words(view)}. Last: ${this.tell()}.`,
      caption: `${this.title}, ${this.words(view)}`,
    });
  }

  table() {
    return this.chart.table();
  }
}

const subOf = (row) => {
  const { value, error } = estimate(row.value, row.lower, row.upper);
  return `${value} ${error}`;
};

/** More labels: a bar with a whisker and a small line for each. */
class BarsCard extends LabelsCard {
  constructor(queries, stream, options) {
    super(queries, stream, options);
    const many = this.query.labels === null || this.query.labels.length > 8;
    this.span = many ? 8 : 4;
    this.large = options.large === true;
    this.order = new SteadyOrder();
    this.list = new BarList({ words: `${safe(this.title)} by label`, sparks: true });
    this.list.element.classList.toggle("two", many);
    this.frame.content.append(this.list.element);
  }

  paint(view) {
    const about = `${view.window.ticks} ${view.range?.words}`;
    const steady = this.order.order(this.drawn, about);
    const shown = this.large ? steady : steady.slice(0, ON_THE_BOARD);
    const rows = shown.map((row) => ({ ...row, points: this.numbers.points(row.label) }));
    this.list.draw(rows, { extent: { from: view.extent.from } });
    this.drawn = steady;
    const left = steady.length - shown.length;
    this.frame.setFoot(`${left ? `The ${shown.length} largest of ${steady.length}. ` : ""}${hollowWords(rows)}`);
  }

  unit(answer) {
    return `${super.unit(answer)}${this.view.range?.words ? ` · lines: ${this.view.range.words.toLowerCase()}` : ""}`;
  }
}

const cut = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);

/** "Hollow bars cannot be told from zero: AS, HA." */
function hollowWords(rows) {
  const hollow = rows.filter((row) => !row.clear).map((row) => cut(safe(row.name)));
  const steady = "Rows change places only when the difference is clear.";
  if (!hollow.length) return steady;
  const named =
    hollow.length > NAMED_HOLLOW
      ? `${hollow.slice(0, NAMED_HOLLOW).join(", ")} and ${hollow.length - NAMED_HOLLOW} more`
      : hollow.join(", ");
  return `Hollow bars cannot be told from zero: ${named}. ${steady}`;
}

/** Bins of numbers, in their own order. */
class BinsCard extends LabelsCard {
  constructor(queries, stream, options) {
    super(queries, stream, options);
    this.box = element("div");
    this.columns = new Columns(this.box);
    this.frame.content.append(this.box);
  }

  paint(view) {
    const words = `${safe(this.title)}, ${this.words(view)}`;
    this.drawn = this.drawn.map((row) => ({ ...row, name: row.name.replace(/(^|\s)-(?=[\d.])/g, "$1−") }));
    this.columns.draw({
      rows: this.drawn,
      edges: this.query.edges,
      caption: words,
      say: `${words}. Most: ${this.tell()}.`,
    });
    const hollow = this.drawn.some((row) => !row.clear) ? ["Hollow bars cannot be told from zero."] : [];
    const uneven = isUneven(this.query.edges) ? ["A bar is all in its range, and the ranges are not equally wide."] : [];
    this.frame.setFoot([...uneven, ...hollow].join(" "));
  }

  table() {
    return this.columns.table();
  }
}

/** Whether bins differ in width, so that heights of bars are no densities. */
function isUneven(edges) {
  const widths = (edges ?? []).slice(1).map((edge, i) => edge - edges[i]);
  return widths.some((width) => Math.abs(width - widths[0]) > 1e-9 * Math.abs(width));
}

/** Which of them shows a statistic. */
export function barsCard(queries, stream, options) {
  const [{ edges, labels }] = queries;
  if (edges || areOrdered(labels)) return new BinsCard(queries, stream, options);
  if (labels !== null && labels.length <= AS_LINES) return new FewLabelsCard(queries, stream, options);
  return new BarsCard(queries, stream, options);
}
