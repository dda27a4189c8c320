/** Long lists of labels: the first few by value, or those that a filter finds. */

import { element, setText } from "./dom.js";
import { number } from "./format.js";

export const LIMIT = 30;

export class Shortlist {
  /** `changed` is called when the reader types; `things` are what is listed. */
  constructor(changed, things = "labels") {
    this.things = things;
    this.input = element("input", {
      type: "search",
      placeholder: `Filter ${things}`,
      "aria-label": `Filter ${things}`,
      oninput: changed,
    });
    this.note = element("p", { class: "quiet note" });
    this.element = element("div", { class: "shortlist", hidden: true }, this.input, this.note);
  }

  /**
   * The rows ({label, value, ...; `shown` where readers call it otherwise}) to be shown, in the order in which they
   * came; `kept` ones stay without a filter.
   */
  pick(rows, kept = () => false) {
    const many = rows.length > LIMIT;
    this.element.hidden = !many;
    if (!many) return rows;
    const wanted = this.input.value.trim().toLocaleLowerCase();
    const found = wanted ? rows.filter((row) => (row.shown ?? row.label).toLocaleLowerCase().includes(wanted)) : rows;
    const best = new Set([...found].sort((a, b) => b.value - a.value).slice(0, LIMIT));
    setText(this.note, note(rows.length, found.length, best.size, wanted !== "", this.things));
    return found.filter((row) => best.has(row) || (!wanted && kept(row)));
  }
}

function note(all, found, shown, filtered, things) {
  if (!filtered) return `The ${number(shown)} largest of ${number(all)} ${things}`;
  if (found > shown) return `The ${number(shown)} largest of ${number(found)} that match, of ${number(all)} ${things}`;
  return `${number(found)} of ${number(all)} ${things} match`;
}
