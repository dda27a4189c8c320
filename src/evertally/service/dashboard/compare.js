/** The labels of a statistic, largest first, to be picked for the chart. Long lists are searched on the server. */

import { icon } from "./charts/icons.js";
import { look, lookKey } from "./charts/look.js";
import { element, setText } from "./dom.js";
import { estimate, label as safe, number } from "./format.js";
import { MOST_PICKS } from "./state.js";

const ROWS = 50; // at a time
const MANY = 50; // labels: from here on "clear of the noise" holds for all at once
const WAIT = 200; // milliseconds after the last key

export class Compare {
  constructor({ stream, state, data }, query, toggle) {
    Object.assign(this, { stream, state, data, query, toggle, more: 0, rows: [] });
    this.count = element("p", { class: "quiet" });
    this.input = element("input", {
      type: "search",
      "aria-label": "Find a label",
      placeholder: "Find a label",
      autocomplete: "off",
      maxlength: "200",
      oninput: () => this.typed(),
    });
    this.input.value = state.search;
    this.note = element("p", { class: "quiet note-line", role: "status" });
    this.list = element("ul", { class: "labels" });
    this.further = element(
      "button",
      { type: "button", class: "btn", hidden: true, onclick: () => this.showMore() },
      `Show ${ROWS} more`,
    );
    this.element = element(
      "section",
      { class: "card compare" },
      element("h3", {}, "Compare"),
      this.count,
      element("div", { class: "find-box" }, icon("search"), this.input),
      this.note,
      this.list,
      this.further,
    );
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.more = 0;
      this.state.set({ search: this.input.value.trim() });
    }, WAIT);
  }

  showMore() {
    this.more += 1;
    this.state.tell(["more"]);
  }

  /** The rows. Short lists stand in the order of the whole shown range: that of one window changes by chance. */
  async load(range) {
    const { state, query, data } = this;
    const whole = range.from === 0 ? null : range.to - range.from;
    const ranked = await data.labels(query, whole, range.to, { limit: ROWS });
    this.largest = ranked.rows.map((row) => row.label);
    const pages = Array.from({ length: this.more + 1 }, (_, page) =>
      data.labels(query, state.window.ticks, range.to, { search: state.search, offset: page * ROWS, limit: ROWS }),
    );
    const answers = await Promise.all(pages);
    this.answer = answers[0];
    this.rows = answers.flatMap((answer) => answer.rows);
    if (this.answer.labels > MANY) return;
    const places = new Map(this.largest.map((label, place) => [label, place]));
    this.rows.sort((a, b) => (places.get(a.label) ?? MANY) - (places.get(b.label) ?? MANY));
  }

  /** `picked`: the rows of the picked labels; what is picked stands in the list even if it is not among those found. */
  draw(picked, per) {
    const picks = picked.map((row) => row.label);
    const { labels, matching, clear } = this.answer;
    setText(this.count, `${number(picks.length)} of ${number(labels)} labels, ${MOST_PICKS} at most`);
    const scale = per ? per.ticks / this.state.window.ticks : 1;
    const few = labels <= MANY || this.rows.length === 0;
    const found = this.state.search !== "" && this.rows.length === 0;
    const words = `${number(matching)} match, ${number(clear)} of them clear of the noise.`;
    setText(this.note, found ? "Nothing of that name is published here." : few ? "" : words);
    this.further.hidden = this.rows.length >= matching;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.label : null;
    const listed = new Set(this.rows.map((row) => row.label));
    const others = this.rows.map((row, i) => this.row(row, i, picks, scale));
    const first = picked.filter((row) => !listed.has(row.label)).map((row, i) => this.row(row, `first-${i}`, picks, 1));
    this.list.replaceChildren(...first, ...others);
    if (focused === null) return;
    [...this.list.querySelectorAll("input")].find((one) => one.dataset.label === focused)?.focus();
  }

  row({ label, value, lower, upper, clear }, i, picks, scale) {
    const on = picks.includes(label);
    const [middle, low, high] = [value, lower, upper].map((one) => (one === null ? null : one * scale));
    const { value: shown, error } = estimate(middle, low, high);
    const id = `pick-${i}`;
    const box = element("input", { type: "checkbox", id, "data-label": label, onchange: () => this.toggle(label) });
    box.checked = on;
    const name = safe(label);
    return element(
      "li",
      { class: `${on ? "on" : ""} ${clear ? "" : "faint"}` },
      box,
      lookKey(look(this.query, label)),
      element("label", { for: id, title: name }, element("bdi", {}, name)),
      element("span", { class: "amount" }, shown, element("span", { class: "quiet" }, error && ` ${error}`)),
    );
  }
}
