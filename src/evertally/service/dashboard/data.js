/** Answers of the service about statistics. Each names the tick it ends at, so it stays true and is asked for once. */

import { getJson, pathOf } from "./api.js";

const POINTS = 600; // of a line; more than the pixels of a narrow chart
const NUMBERS = 60_000; // in one answer: long lists of labels get fewer points
const DAY = 86400;
const KEPT = 400; // answers
const MANY = 200; // releases

export class Data {
  constructor(stream) {
    this.stream = stream;
    this.kept = new Map(); // address -> promise
  }

  ask(path) {
    if (!this.kept.has(path)) {
      const answer = getJson(path);
      answer.catch(() => this.kept.delete(path));
      this.kept.set(path, answer);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(path);
  }

  /** Windows of a statistic in a range of ticks; `ticks` null: running totals. */
  windows(query, ticks, { from, to }, { labels = null, per = null } = {}) {
    return this.ask(this.windowsPath(query, ticks, { from, to }, { labels, per, points: pointsOf(query, labels) }));
  }

  windowsPath(query, ticks, { from, to }, { labels = null, per = null, points = null, format = null } = {}) {
    const given = { query: query.name, window: ticks ?? "total", from, to, per, label: labels ?? [], points, format };
    return pathOf("v1/windows", given);
  }

  /** Counts of a window longer than a day are shown as counts a day, or as the spec says: ticks, or null. */
  rateOf(query, ticks) {
    if (ticks === null) return null;
    if (query.per) return query.per;
    const length = this.stream.clock.tick_seconds;
    if (length === null || ticks * length <= DAY || DAY % length !== 0) return null;
    return DAY / length;
  }

  /** Releases as they are: one a day where there are very many, for noise that is drawn anew every hour is no news. */
  history(query, { from, to }) {
    const day = this.stream.clock.tick_seconds ? Math.max(1, Math.floor(DAY / this.stream.clock.tick_seconds)) : 1;
    const daily = to - from > MANY && (to - from) / day > 2 ? Math.ceil((to - from) / day) : Infinity;
    const given = { query: query.name, first: from + 1, last: to, points: Math.min(daily, pointsOf(query, null)) };
    return this.ask(pathOf("v1/releases", given)).then((answer) => answer.releases);
  }

  labels(query, ticks, to, { search = "", sort = "value", offset = 0, limit = 50, per = null } = {}) {
    const given = { query: query.name, window: ticks ?? "total", to, search, sort, offset, limit, per };
    return this.ask(pathOf("v1/labels", given));
  }

  exactness(query) {
    return this.ask(pathOf("v1/exactness", { query: query.name }));
  }
}

function pointsOf(query, labels) {
  const lines = (labels ?? query.labels ?? [0]).length || 1;
  return Math.min(POINTS, Math.max(60, Math.floor(NUMBERS / Math.min(lines, 50))));
}
