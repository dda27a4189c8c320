/** What a card is given to draw: what is chosen, and the answers that it needs (see cards/cards.js). */

import { Refused } from "./api.js";

const DAY = 86400;
const ALL_FOUND = 1000; // labels, of those that were found
const HATCHED = 0.08; // of the shown time at most: how much of a chart has had no news

export class Views {
  constructor({ stream, feed, state, data, clock }) {
    Object.assign(this, { stream, feed, state, data, clock });
    this.queries = new Map(stream.queries.map((query) => [query.name, query]));
  }

  /** The ticks that are shown; `part` false: without what the reader has dragged out. */
  range(part = true) {
    const last = this.feed.tick;
    if (part && this.state.part) {
      const [from, to] = this.state.part;
      return { from: Math.min(from, Math.max(0, last - 1)), to: Math.min(to, last), words: "this part" };
    }
    const { ticks, words } = this.state.range;
    return { from: ticks === null ? 0 : Math.max(0, last - ticks), to: last, words };
  }

  /** What a view depends on: it is drawn again when this is another. */
  key(part = true) {
    const { from, to } = this.range(part);
    return JSON.stringify([from, to, this.state.window.ticks, this.feed.state, this.stream.released]);
  }

  /** A view without answers. */
  shape(part = true) {
    const { clock, feed, state } = this;
    const range = this.range(part);
    const extent = { from: clock.at(range.from), to: clock.at(Math.max(range.to, range.from + 1)) };
    const lost = this.lost(extent, range);
    if (lost) extent.to = lost.to;
    return {
      window: state.window,
      range,
      extent,
      lost,
      latest: feed.shown,
      state: feed.state === "connecting" ? "live" : feed.state,
      first: clock.written(state.window.ticks ?? 1),
      zoom: (from, to) => this.zoom(from, to),
      back: () => state.set({ part: null }),
      zoomed: state.part !== null,
      ...{ series: {}, finer: {}, whole: {}, listed: {}, labels: {}, exactness: {}, history: {} },
    };
  }

  /** The time without news, at the end of what is shown. */
  lost({ from, to }, range) {
    if (this.feed.state !== "lost" || range.to !== this.feed.tick || !this.clock.timed) return null;
    const silent = (Date.now() - this.feed.lostSince) / 1000;
    const [least, most] = [(to - from) * 0.03, (to - from) * HATCHED];
    return { from: to, to: to + Math.min(most, Math.max(least, silent)) };
  }

  zoom(from, to) {
    const first = Math.max(0, Math.floor(this.clock.tickAt(from)));
    const last = Math.min(this.feed.tick, Math.ceil(this.clock.tickAt(to)));
    const least = Math.min(this.feed.tick, 2 * (this.state.window.ticks ?? 1));
    const start = Math.min(first, Math.max(0, this.feed.tick - least));
    this.state.set({ part: [start, Math.max(last, start + least)] });
  }

  /** The view of a card or a tile with everything it needs. Raises what keeps an answer from coming. */
  async of({ names, needs }, { part = true, asked = {} } = {}) {
    const view = this.shape(part);
    const wanted = Object.keys(needs).filter((need) => needs[need] && this.has(need));
    await Promise.all(
      names.flatMap((name) =>
        wanted.map(async (need) => {
          const place = need === "windows" ? "series" : need;
          view[place][name] = await known(this.answer(need, this.queries.get(name), view.range, asked[name]));
        }),
      ),
    );
    return view;
  }

  /** Errors known beforehand are shown as long as there is no full window; before the first release, nothing else. */
  has(need) {
    const { tick } = this.feed;
    return need === "exactness" ? tick < (this.state.window.ticks ?? 1) : tick > 0;
  }

  answer(need, query, range, asked) {
    const { ticks } = this.state.window;
    const per = this.data.rateOf(query, ticks);
    if (need === "windows") return this.data.windows(query, ticks, range, { per });
    if (need === "finer") {
      const finer = this.finer(ticks);
      return finer === null ? undefined : this.data.windows(query, finer, range, { per });
    }
    // Rankings are of all that is shown; of all that ever was, where the reader looks at totals.
    const whole = ticks === null ? null : range.to - range.from;
    const rate = this.data.rateOf(query, whole);
    if (need === "whole") return this.data.windows(query, whole, range, { per: rate });
    if (need === "listed") return this.data.labels(query, whole, range.to, { per: rate, limit: ALL_FOUND });
    if (need === "history") return this.data.history(query, range);
    if (need === "labels") return this.data.labels(query, ticks, range.to, { ...asked, per });
    return this.data.exactness(query);
  }

  /** The shorter window behind a chosen one: a day, or a tick where ticks are longer; null if it is no shorter. */
  finer(ticks) {
    const length = this.stream.clock.tick_seconds;
    if (ticks === null || length === null) return null;
    const day = length >= DAY ? 1 : DAY / length;
    return Number.isInteger(day) && day < ticks ? day : null;
  }
}

/** What the service does not have for a statistic is left out; a connection or a token that fails is told. */
async function known(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refused && [400, 404, 422].includes(error.status)) return undefined;
    throw error;
  }
}
