/** All statistics: the switches, a row of numbers, and a card for each statistic. */

import { groups, layOut, makeCard } from "./cards/cards.js";
import { Controls } from "./controls.js";
import { element, setText } from "./dom.js";
import { Painter } from "./painter.js";
import { makeTile, tiled } from "./tiles.js";

const FIRST_TILES = 4;

export class Board {
  constructor({ stream, state, views }, failed) {
    this.state = state;
    this.controls = new Controls(stream, state);
    this.painter = new Painter(views, failed, () => this.arrange());
    const open = (name) => state.set({ open: name, picks: [], search: "", part: null });
    this.tiles = tiled(stream.queries).map((query) => makeTile(query, stream, { open }));
    this.cards = groups(stream.queries).map((group) => {
      const ask = (...wanted) => asks(...wanted);
      const card = makeCard(group, stream, { open, ask });
      const asks = this.painter.add(card);
      return card;
    });
    for (const tile of this.tiles) this.painter.add(tile, { zoomable: false });
    this.arrange();
    this.all = element("button", {
      type: "button",
      class: "btn all",
      onclick: () => state.set({ all: !state.all }),
      hidden: this.tiles.length <= FIRST_TILES,
    });
    this.element = element(
      "div",
      { class: "board" },
      this.controls.element,
      element("div", { class: "grid tiles" }, ...this.tiles.map((tile) => tile.element)),
      this.all,
      element("div", { class: "grid", id: "cards" }, ...this.cards.map((card) => card.element)),
    );
    this.mark();
  }

  mark() {
    this.controls.mark();
    const { all } = this.state;
    this.tiles.forEach((tile, i) => (tile.element.hidden = i >= FIRST_TILES && !all));
    this.all.setAttribute("aria-expanded", String(all));
    setText(this.all, all ? "Fewer numbers" : `All numbers, ${this.tiles.length}`);
  }

  /** A card may be wider than it seemed, once it is known how much it shows. */
  arrange() {
    const spans = this.cards.map((card) => card.span).join();
    if (spans === this.spans) return;
    this.spans = spans;
    layOut(this.cards);
  }

  refresh() {
    this.painter.refresh();
  }

  /** The last values in words, of the first few statistics. */
  tell() {
    return this.cards
      .slice(0, FIRST_TILES)
      .map((card) => [card.title, card.tell()])
      .filter(([, told]) => told)
      .map((told) => told.join(": "))
      .join(". ");
  }
}
