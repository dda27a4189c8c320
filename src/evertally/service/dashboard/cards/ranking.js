/** Rankings: labels that were found or are largest, with places that say what cannot be told apart. */

import { BarList, isClear } from "../charts/hbar.js";
import { remember } from "../charts/look.js";
import { SteadyOrder, withPlaces } from "../charts/places.js";
import { isTotal } from "../charts/points.js";
import { numbersTable } from "../charts/table.js";
import { element } from "../dom.js";
import { label as safe, told } from "../format.js";
import { LabelsCard } from "./bars.js";
import { percentWords } from "../promise.js";
import { inWords, sinceWords } from "./words.js";

const ON_THE_BOARD = 10;

export class RankingCard extends LabelsCard {
  constructor(queries, stream, options) {
    // A ranking is of the whole shown range: short windows tell nothing apart.
    const [{ differences, running }] = queries;
    super(queries, stream, options, { windows: false, whole: differences, listed: running, history: false });
    this.large = options.large === true;
    this.nested = this.query.card.nested;
    this.counts = this.query.card.places; // counts by rank, without names: their order is what they are
    this.order = new SteadyOrder();
    this.list = new BarList({ words: `${safe(this.title)}, the largest first`, places: !this.nested && !this.counts });
    this.list.element.classList.toggle("nested", this.nested);
    if (this.list.places) this.frame.content.append(element("p", { class: "heads" }, "Place"));
    this.frame.content.append(this.list.element);
  }

  draw(view) {
    super.draw({ ...view, series: view.whole ?? {} });
  }

  answerOf(view) {
    return this.query.running ? asWindows(view.listed?.[this.query.name]) : super.answerOf(view);
  }

  numbersOf(view) {
    const listed = this.query.running ? view.listed?.[this.query.name] : null;
    if (!listed) return super.numbersOf(view);
    return { answer: asWindows(listed), labels: listed.rows.map((row) => row.label), last: listed.rows };
  }

  paint(view) {
    remember(this.query, this.numbers.labels);
    const ranked = this.nested
      ? byPrefix(this.drawn)
      : this.counts
        ? this.drawn
        : this.placed(view);
    this.drawn = ranked.map((row) => ({ ...row, clear: this.nested || isClear(row) }));
    this.list.draw(this.large ? this.drawn : this.drawn.slice(0, ON_THE_BOARD));
    this.frame.setFoot(this.foot());
  }

  /** Places of what is known over all that is shown. What was found later comes after it, with its own time. */
  placed(view) {
    const later = this.drawn.filter((row) => row.start);
    const whole = this.drawn.filter((row) => !row.start);
    const about = `${view.window.ticks === null} ${view.range?.words}`;
    return [
      ...withPlaces(this.order.order(whole, about)),
      ...later.map((row) => ({ ...row, place: "", tied: false, note: sinceWords({ start: [row.start] }) })),
    ];
  }

  foot() {
    const left = this.large ? 0 : Math.max(0, this.drawn.length - ON_THE_BOARD);
    const more = left ? ` ${left} more are on their own page.` : "";
    if (this.nested) return `Each row holds all that begins with it.${more}`;
    if (this.counts) return `The largest numbers, without the names they belong to.${more}`;
    const { beta } = this.numbers.answer ?? {};
    return [
      this.drawn.some((row) => row.tied) ? "Brackets join neighbours that cannot be told apart." : "",
      beta > this.stream.beta ? `Whiskers here hold ${percentWords(beta)}.` : "",
      more.trim(),
    ]
      .filter(Boolean)
      .join(" ");
  }

  unit(answer) {
    if (isTotal(answer)) return super.unit(answer);
    const over = overWords(this.view.range?.words.toLowerCase(), answer);
    return answer.per ? `per ${inWords(answer.per.words)}, ${over}` : over;
  }

  table() {
    const heads = [this.query.column ?? "Label", "Number", ...(this.list.places ? ["Place"] : [])];
    const rows = this.drawn.map((row) => ({
      head: safe(row.name),
      cells: [told(row.value, row.lower, row.upper), ...(this.list.places ? [row.place] : [])],
    }));
    return numbersTable({ caption: `${this.title}, ${this.words(this.view)}`, heads, rows });
  }
}

/** "over the 90 days shown", "since 1 Jan". */
function overWords(range, answer) {
  if (range === "all") return sinceWords(answer);
  if (range === undefined || range.startsWith("this")) return `over ${range ?? "what is shown"}`;
  return `over the ${range} shown`;
}

/** An answer of v1/labels as one window of v1/windows. */
function asWindows(listed) {
  if (!listed) return null;
  const { start, end, tick, since, per, beta } = listed;
  // Words of the range say how long it is.
  const window = since === 0 && !per ? null : { ticks: tick - since, words: "" };
  return { window, per, beta, tick: [tick], start: [start], end: [end], stddev: [null] };
}

/** Prefixes under what they begin with. */
function byPrefix(rows) {
  const bare = (row) => row.label.replace(/\*$/, "");
  const sorted = [...rows].sort((a, b) => (bare(a) < bare(b) ? -1 : 1));
  return sorted.map((row) => ({
    ...row,
    depth: Math.min(4, sorted.filter((other) => other !== row && bare(row).startsWith(bare(other))).length),
  }));
}
