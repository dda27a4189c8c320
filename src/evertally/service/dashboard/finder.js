/** Finds statistics and labels by their names: "/" goes there, arrows choose, Enter opens. */

import { icon } from "./charts/icons.js";
import { element } from "./dom.js";
import { label as safe, number, told } from "./format.js";
import { namesOf } from "./cards/names.js";

const WAIT = 180; // milliseconds after the last key
const MOST_STATISTICS = 4;
const MOST_LABELS = 6;

export class Finder {
  constructor(place, { stream, state, feed, data }) {
    Object.assign(this, { place, stream, state, feed, data, turn: 0, chosen: -1, options: [] });
    this.input = element("input", {
      id: "finder",
      type: "search",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": "found",
      "aria-autocomplete": "list",
      "aria-label": "Find a statistic or a label",
      placeholder: "Find a statistic or a label",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "200",
      oninput: () => this.typed(),
      onkeydown: (event) => this.pressed(event),
    });
    this.list = element("div", { id: "found", class: "found", role: "listbox", "aria-label": "Found", hidden: true });
    this.button = element(
      "button",
      { type: "button", class: "btn phone-only", "aria-label": "Find", onclick: () => this.reveal() },
      icon("search"),
    );
    const box = element("div", { class: "find-box" }, icon("search"), this.input, element("kbd", {}, "/"), this.list);
    place.replaceChildren(this.button, box);
    place.hidden = false;
    addEventListener("keydown", (event) => this.shortcut(event));
    place.addEventListener("focusout", (event) => {
      if (!place.contains(event.relatedTarget)) this.close();
    });
  }

  shortcut(event) {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.reveal();
  }

  reveal() {
    this.place.classList.add("revealed");
    this.input.focus();
  }

  close() {
    this.turn += 1;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    this.place.classList.remove("revealed");
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), WAIT);
  }

  pressed(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.close();
      this.input.blur();
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(this.timer);
      const go = () => this.options[Math.max(0, this.chosen)]?.click();
      if (this.searched === this.input.value) go();
      else this.search().then(go);
    } else if (["ArrowDown", "ArrowUp"].includes(event.key) && this.options.length) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.choose((this.chosen + step + this.options.length) % this.options.length);
    }
  }

  choose(place) {
    this.chosen = place;
    this.options.forEach((option, i) => option.setAttribute("aria-selected", String(i === place)));
    if (place < 0) return;
    this.input.setAttribute("aria-activedescendant", this.options[place].id);
    this.options[place].scrollIntoView({ block: "nearest" });
  }

  /** Names are matched here, where they all are; only the values of the few that are listed are asked for. */
  async search() {
    const wanted = this.input.value.trim().toLocaleLowerCase();
    this.searched = this.input.value;
    const turn = ++this.turn;
    if (!wanted) return this.close();
    const has = (text) => String(text).toLocaleLowerCase().includes(wanted);
    const statistics = this.stream.queries.filter((query) => has(query.title ?? query.name) || has(query.name));
    const rank = ({ shown }) => [shown.toLocaleLowerCase() === wanted, shown.toLocaleLowerCase().startsWith(wanted)];
    const better = (a, b) => rank(b)[0] - rank(a)[0] || rank(b)[1] - rank(a)[1];
    const hits = this.stream.queries.flatMap((query) => this.labelsOf(query, has)).sort(better);
    this.draw(statistics, hits, new Map());
    const values = await this.valuesOf(hits.slice(0, MOST_LABELS), wanted).catch(() => new Map());
    if (turn === this.turn && values.size) this.draw(statistics, hits, values);
  }

  labelsOf(query, has) {
    const nameOf = namesOf(query);
    const labels = query.labels ?? this.feed.shown?.queries[query.name]?.category ?? [];
    if (query.card.places || query.card.vertices) return [];
    return labels.map(String).flatMap((label) => (has(nameOf(label)) ? [{ query, label, shown: nameOf(label) }] : []));
  }

  async valuesOf(hits, search) {
    const values = new Map();
    const valued = (query) => query.differences && !query.card.names;
    const queries = [...new Set(hits.map((hit) => hit.query))].filter(valued);
    if (!this.feed.tick) return values;
    await Promise.all(
      queries.map(async (query) => {
        const answer = await this.data.labels(query, this.state.window.ticks, this.feed.tick, { search, sort: "name" });
        for (const row of answer.rows) values.set(JSON.stringify([query.name, row.label]), row);
      }),
    );
    return values;
  }

  draw(statistics, hits, values) {
    const open = (changes) => () => {
      this.input.value = "";
      this.close();
      this.input.blur();
      this.state.set({ part: null, search: "", picks: [], ...changes });
    };
    const option = (changes, ...content) =>
      element(
        "div",
        { role: "option", class: "option", "aria-selected": "false", tabindex: "-1", onclick: open(changes) },
        ...content,
      );
    const title = (query) => safe(query.title ?? query.name);
    const first = statistics
      .slice(0, MOST_STATISTICS)
      .map((query) => option({ open: query.name }, element("b", {}, element("bdi", {}, title(query)))));
    const second = hits.slice(0, MOST_LABELS).map(({ query, label, shown }) => {
      const row = values.get(JSON.stringify([query.name, label]));
      const value = row ? told(row.value, row.lower, row.upper, query.unit) : "";
      return option(
        { open: query.name, picks: [label] },
        element("b", {}, element("bdi", {}, safe(shown))),
        element("span", { class: "quiet of" }, title(query)),
        element("span", { class: "amount" }, value),
      );
    });
    const kept = this.chosen;
    this.options = [...first, ...second];
    this.options.forEach((one, i) => (one.id = `found-${i}`));
    const none = this.options.length === 0 ? element("p", {}, "Nothing of that name is published here.") : null;
    this.list.replaceChildren(
      ...[
        first.length ? element("p", { "aria-hidden": "true" }, "Statistics") : null,
        ...first,
        second.length ? element("p", { "aria-hidden": "true" }, `Labels, ${number(hits.length)} found`) : null,
        ...second,
        none,
      ].filter(Boolean),
    );
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.choose(values.size ? Math.min(kept, this.options.length - 1) : -1);
  }
}
