/** The cards with their data: history for the shown range, and every new release at its end. */

import { getJson, releasesPath } from "./api.js";
import { groups, makeCard } from "./cards.js";
import { byId } from "./dom.js";
import { instant } from "./format.js";

const POINTS = 600; // of a history, for each card; more than the pixels of a narrow chart
const NUMBERS = 60_000; // in one answer: histograms with very many labels get fewer points

export class Board {
  constructor(stream, { zoom, reset }) {
    this.stream = stream;
    this.window = { ticks: null };
    this.latest = null;
    this.turn = 0; // which range was asked for last: answers to earlier questions are dropped
    const timed = stream.clock.tick_seconds !== null;
    const chart = { timed, reset, zoom: (from, to) => zoom(...this.ticksBetween(from, to)) };
    this.cards = groups(stream.queries).map((group) => makeCard(group, chart, stream));
    byId("cards").replaceChildren(...this.cards.map((card) => card.element));
  }

  get follows() {
    return this.window.first === undefined;
  }

  /** Shows another range. Resolves when it is there; raises if one of the answers does not come. */
  async show(window) {
    this.window = window;
    const turn = ++this.turn;
    byId("cards").setAttribute("aria-busy", "true");
    await Promise.all(this.cards.map((card) => this.load(card, turn)));
    if (turn === this.turn) byId("cards").removeAttribute("aria-busy");
  }

  async load(card, turn = this.turn) {
    if (card.view.needsNoHistory) return;
    card.loading = true;
    try {
      const { releases } = await getJson(releasesPath(card.names, { ...this.bounds(), points: this.pointsOf(card) }));
      if (turn !== this.turn) return;
      const end = releases.at(-1)?.tick ?? 0;
      const since = this.follows ? card.points.filter((point) => point.tick > end) : [];
      card.points = [...releases.map((release) => pointOf(release, card.names)), ...since];
      this.redraw();
    } finally {
      card.loading = false;
    }
  }

  bounds() {
    const { ticks, first, last } = this.window;
    if (!this.follows) return { first, last };
    return { first: ticks === null ? 1 : Math.max(1, this.lastTick() - ticks + 1), last: null };
  }

  pointsOf(card) {
    const sizes = card.names.map((name) => this.latest?.queries[name]?.category?.length ?? 1);
    const declared = card.group.map((query) => query.labels?.length ?? 1);
    return Math.min(POINTS, Math.max(60, Math.floor(NUMBERS / Math.max(...sizes, ...declared))));
  }

  lastTick = () => this.latest?.tick ?? this.stream.released ?? 0;

  /** A new release, or the last one that was there when the page came. Says whether it was new. */
  add(release) {
    if (this.latest && release.tick <= this.latest.tick) return false;
    this.latest = release;
    if (this.follows) for (const card of this.cards) this.extend(card, release);
    this.redraw();
    return true;
  }

  extend(card, release) {
    if (card.view.needsNoHistory || (card.points.at(-1)?.tick ?? 0) >= release.tick) return;
    card.points.push(pointOf(release, card.names));
    const first = this.bounds().first;
    while (card.points[0].tick < first) card.points.shift();
    // The service thins evenly and keeps the whole range; dropping points here would forget some of it.
    if (card.points.length > 2 * this.pointsOf(card) && !card.loading) this.load(card).catch(() => {});
  }

  /** Draws once per frame, however many releases came: after a lost connection there may be thousands. */
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      for (const card of this.cards) this.draw(card);
    });
  }

  draw(card) {
    card.empty.hidden = this.latest !== null;
    card.view.element.hidden = this.latest === null;
    if (this.latest) card.view.draw(card.points, this.latest);
  }

  /** From places on the time axis to ticks: the clock is even, so two points tell all of it. */
  ticksBetween(from, to) {
    const points = this.cards.map((card) => card.points).find((list) => list.length > 1) ?? [];
    if (!points.length) return [1, this.lastTick()];
    const [start, end] = [points[0], points.at(-1)];
    const tickAt = (x) => start.tick + ((x - start.x) / (end.x - start.x)) * (end.tick - start.tick);
    const first = Math.max(1, Math.floor(tickAt(from)));
    return [first, Math.max(first + 1, Math.min(this.lastTick(), Math.ceil(tickAt(to))))];
  }

  /** The last values in words. */
  tell() {
    const told = this.cards.map((card) => `${card.names.join(", ")}: ${card.view.tell(this.latest)}`);
    return `Tick ${this.latest.tick}. ${told.join(". ")}`;
  }
}

/** A release with the queries of one card only: kept whole, one long histogram would be held by every card. */
const pointOf = ({ tick, time, queries }, names) => ({
  tick,
  time,
  x: instant(time),
  queries: Object.fromEntries(names.map((name) => [name, queries[name]])),
});
