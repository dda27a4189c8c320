/** Rankings: labels that were found or are largest, with places that say what cannot be told apart. */

import { BarList, isClear } from "../charts/hbar.js";
import { remember } from "../charts/look.js";
import { SteadyOrder, withPlaces } from "../charts/places.js";
import { isTotal } from "../charts/points.js";
import { numbersTable } from "../charts/table.js";
import { element } from "../dom.js";
import { label as safe, told } from "../format.js";
import { LabelsCard } from "./bars.js";
import { inWords } from "./words.js";

const ON_THE_BOARD = 10;

export class RankingCard extends LabelsCard {
  constructor(queries, stream, options) {
    // A ranking is of the whole shown range: short windows tell nothing apart.
    super(queries, stream, options, { windows: false, whole: queries[0].differences, history: false });
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

  paint(view) {
    remember(this.query, this.numbers.labels);
    const ranked = this.nested
      ? byPrefix(this.drawn)
      : this.counts
        ? this.drawn
        : withPlaces(this.order.order(this.drawn, view.range?.words));
    this.drawn = ranked.map((row) => ({ ...row, clear: this.nested || isClear(row) }));
    this.list.draw(this.large ? this.drawn : this.drawn.slice(0, ON_THE_BOARD));
    this.frame.setFoot(this.foot());
  }

  foot() {
    const left = this.large ? 0 : Math.max(0, this.drawn.length - ON_THE_BOARD);
    const more = left ? ` ${left} more are on their own page.` : "";
    if (this.nested) return `Each row holds all that begins with it.${more}`;
    if (this.counts) return `The largest numbers, without the names they belong to.${more}`;
    return this.drawn.some((row) => row.tied)
      ? `Brackets join neighbours that cannot be told apart.${more}`
      : more.trim();
  }

  unit(answer) {
    if (isTotal(answer)) return super.unit(answer);
    const over = this.view.range?.words
      ? `over the ${this.view.range.words.toLowerCase()} shown`
      : "over what is shown";
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

/** Prefixes under what they begin with. */
function byPrefix(rows) {
  const bare = (row) => row.label.replace(/\*$/, "");
  const sorted = [...rows].sort((a, b) => (bare(a) < bare(b) ? -1 : 1));
  return sorted.map((row) => ({
    ...row,
    depth: Math.min(4, sorted.filter((other) => other !== row && bare(row).startsWith(bare(other))).length),
  }));
}
