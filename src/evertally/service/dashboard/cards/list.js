/** A long list of declared labels: searched and sorted by the service, a page of rows at a time. */

import { icon } from "../charts/icons.js";
import { BarList } from "../charts/hbar.js";
import { placeWords } from "../charts/places.js";
import { numbersTable } from "../charts/table.js";
import { element, setText } from "../dom.js";
import { aloud, label as safe, number, told } from "../format.js";
import { Frame } from "./frame.js";
import { namesOf } from "./names.js";
import { inWords, lastWords, sinceWords } from "./words.js";

export const LONG = 50; // labels: longer lists are searched
const ON_THE_BOARD = 12; // rows; a page of its own has as many as the service sends
const AFTER = 250; // milliseconds without a key until the service is asked

export class ListCard {
  constructor(queries, stream, options) {
    [this.query] = queries;
    Object.assign(this, { stream, span: 8, large: options.large === true, ask: options.ask ?? (() => {}) });
    this.needs = { labels: true, exactness: true };
    this.nameOf = namesOf(this.query);
    this.offset = 0;
    this.frame = new Frame(queries, stream, { ...options, table: () => this.table() });
    Object.assign(this, { element: this.frame.element, title: this.frame.title });
    const words = `Find among ${number(this.query.labels.length)} labels`;
    this.input = element("input", {
      type: "search",
      placeholder: words,
      "aria-label": words,
      oninput: () => this.typed(),
    });
    this.clear = element("input", {
      type: "checkbox",
      checked: true,
      onchange: () => this.view && this.draw(this.view),
    });
    this.status = element("p", { class: "foot", role: "status" });
    this.list = new BarList({ words: `${safe(this.title)} by label` });
    this.list.element.classList.add("two");
    this.before = element("button", { type: "button", class: "link", onclick: () => this.turn(-1) }, "Larger ones");
    this.after = element("button", { type: "button", class: "link", onclick: () => this.turn(1) }, "Smaller ones");
    this.frame.content.append(
      element(
        "div",
        { class: "find-in" },
        element("label", { class: "find" }, icon("search"), this.input),
        element("label", { class: "check" }, this.clear, " Only those clear of the noise"),
      ),
      this.status,
      this.list.element,
      element("p", { class: "turn-pages" }, this.before, this.after),
    );
  }

  typed() {
    clearTimeout(this.waiting);
    this.offset = 0;
    this.waiting = setTimeout(() => this.asked(), AFTER);
  }

  turn(pages) {
    this.offset = Math.max(0, this.offset + pages * LONG);
    this.asked();
  }

  asked() {
    this.ask(this.query.name, { search: this.input.value.trim(), sort: "value", offset: this.offset });
  }

  draw(view) {
    this.view = view;
    const answer = view.labels?.[this.query.name];
    this.frame.setSub(this.words(answer, view));
    if (!answer || answer.tick === 0 || answer.tick === null) return this.frame.nothing(view);
    this.frame.show(true);
    const wanted = answer.rows.filter((row) => row.clear || !this.clear.checked);
    this.rows = wanted.map((row) => ({ ...row, name: this.nameOf(row.label), place: placeWords(row.from, row.to) }));
    this.list.draw(this.large ? this.rows : this.rows.slice(0, ON_THE_BOARD), { found: this.input.value.trim() });
    setText(this.status, statusWords(answer, this.input.value.trim() !== "", this.rows.length));
    this.before.hidden = !this.large || this.offset === 0;
    this.after.hidden = !this.large || this.offset + answer.rows.length >= answer.matching;
    this.frame.setFoot(
      `“Clear of the noise” holds for all ${number(answer.labels)} at once, so luck alone does not put a label here.`,
    );
    this.frame.renew();
  }

  words(answer, view) {
    const labels = `${number(this.query.labels.length)} labels`;
    if (this.query.description) return this.query.description;
    if (!answer) return labels;
    const total = view.window.ticks === null;
    const last = lastWords(view.window.words);
    const rate = answer.per ? `per ${inWords(answer.per.words)}, ${last}` : `in the ${last}`;
    return `${total ? sinceWords({ start: [answer.start] }) : rate} · ${labels}`;
  }

  table() {
    const rows = this.rows.map((row) => ({
      head: safe(row.name),
      cells: [told(row.value, row.lower, row.upper), row.place],
    }));
    return numbersTable({ caption: `${this.title}, the largest`, heads: ["Label", "Number", "Place"], rows });
  }

  tell() {
    const best = (this.rows ?? []).slice(0, 3);
    return aloud(best.map((row) => `${safe(row.name)} ${told(row.value, row.lower, row.upper)}`).join("; "));
  }
}

function statusWords({ matching, clear, labels }, searched, rows) {
  if (searched && matching === 0) return "Nothing of that name is published here.";
  const words = searched
    ? `${number(matching)} match, ${number(clear)} of them clear of the noise.`
    : `${number(clear)} of ${number(labels)} are clear of the noise.`;
  return rows === 0 && clear === 0 ? `${words} Longer windows tell more apart.` : words;
}
