/** The course of a statistic: a large chart with what it is compared with, the strip below it, the same as a table. */

import { Refused } from "./api.js";
import { Brush } from "./brush.js";
import { lineChart } from "./charts/line.js";
import { look } from "./charts/look.js";
import { labelsOf, lastOf, pointsOf } from "./charts/points.js";
import { seriesTable } from "./charts/table.js";
import { Compare } from "./compare.js";
import { element, setText } from "./dom.js";
import { estimate, label as safe, moment, number, told } from "./format.js";
import { aRate, measureOf, spoken, titleOf } from "./measure.js";
import { percentWords } from "./promise.js";
import { windowsOf } from "./state.js";
import { words } from "./switches.js";

const AGAIN = 3_000; // milliseconds until what did not come is asked for again
const USUAL_PICKS = 5;
const WEEK = 7 * 86400;

export class Course {
  constructor(page, query, failed, { lead }) {
    const { stream, state, views, data, feed } = page;
    Object.assign(this, { stream, state, views, data, feed, query, failed, lead, drawn: null, busy: false });
    this.many = query.card.view !== "figure" || (query.labels?.length ?? 0) > 1;
    this.title = element("h3", {}, titleOf(query));
    this.hint = element("p", { class: "hint", hidden: true });
    this.box = element("div", { class: "course-chart" });
    const zoom = { zoom: (from, to) => views.zoom(from, to), back: () => state.set({ part: null }) };
    this.chart = lineChart(this.box, zoom);
    this.brush = new Brush(views, state);
    this.empty = element("p", { class: "empty", hidden: true });
    const about = words(
      "Drag to look closer, double click to go back. Arrow keys step through the points.",
      "Touch the chart to read a point.",
    );
    this.shows = false;
    this.about = element("p", { class: "quiet", hidden: true }, ...about);
    const parts = [this.title, this.about, this.box, this.empty, this.brush.element];
    this.picture = element("section", { class: "card course" }, ...parts);
    this.compare = this.many ? new Compare(page, query, (label) => this.toggle(label)) : null;
    this.table = element("section", { class: "card table" });
    this.grid = element("div", { class: "grid of-course" }, this.picture, this.compare?.element, this.table);
    this.element = element("div", {}, this.hint, this.grid);
  }

  /** Before there are numbers there is nothing to compare, and nothing for a table. */
  mark() {
    const { table } = this.state;
    this.picture.hidden = table && this.shows;
    this.table.hidden = !this.shows;
    if (this.compare) this.compare.element.hidden = table || !this.compare.answer;
    this.grid.classList.toggle("alone", !this.compare?.answer);
  }

  close() {}

  tell() {
    return this.said ?? "";
  }

  toggle(label) {
    const shown = this.picks ?? [];
    const picks = shown.includes(label) ? shown.filter((one) => one !== label) : [...shown, label].slice(-6);
    this.state.set({ picks: picks.length ? picks : shown });
  }

  key = () => JSON.stringify([this.views.key(), this.state.picks, this.state.search, this.compare?.more]);

  async refresh() {
    const key = this.key();
    if (!this.feed.ready || this.busy || this.drawn === key) return;
    this.busy = true;
    try {
      if (this.feed.tick < (this.state.window.ticks ?? 1)) this.before();
      else await this.load();
      this.drawn = key;
    } catch (error) {
      if (error instanceof Refused && error.status === 400) {
        this.drawn = key; // it would be refused again: an old tick may not be kept any more
        return this.nothing(`These numbers cannot be shown: ${safe(error.message)}.`);
      }
      if (!this.failed(error)) setTimeout(() => this.refresh(), AGAIN);
      return;
    } finally {
      this.busy = false;
    }
    this.refresh();
  }

  before() {
    const first = moment(this.views.clock.written(this.state.window.ticks ?? 1));
    const known = this.query.stddev === null ? "depends on the data" : "is known already";
    this.nothing(`The first window of this length is full on ${first}. How exact it will be ${known}: see below.`);
  }

  nothing(text) {
    this.chart.clear();
    this.box.hidden = true;
    this.empty.hidden = false;
    setText(this.empty, text);
    this.brush.element.hidden = true;
    this.hint.hidden = true;
    this.about.hidden = true;
    this.shows = false;
    this.mark();
  }

  async load() {
    const { query, data, views, state } = this;
    const range = views.range();
    const { ticks } = state.window;
    const per = data.rateOf(query, ticks);
    if (this.compare) await this.compare.load(range);
    this.picks = this.many ? this.chosen() : null;
    const answer = await data.windows(query, ticks, range, { labels: this.picks, per });
    const finer = this.many ? null : views.finer(ticks);
    const behind = finer === null ? null : await data.windows(query, finer, range, { per });
    const whole = { from: 0, to: this.feed.tick };
    const labels = this.picks?.slice(0, 1) ?? null;
    const overview = await data.windows(query, ticks, whole, { labels, per });
    this.draw(answer, behind, overview);
  }

  /** The labels that have a line: those picked, else the largest of the whole range, which chance moves least. */
  chosen() {
    const declared = this.query.labels && new Set(this.query.labels); // an address may name anything
    const picks = this.state.picks.filter((label) => !declared || declared.has(label));
    return picks.length ? picks : this.compare.largest.slice(0, USUAL_PICKS);
  }

  draw(answer, behind, overview) {
    if (!answer.tick.length) {
      this.nothing("No whole window of this length fits into what is shown.");
      return;
    }
    const { query, stream } = this;
    const measure = measureOf(query, answer, stream);
    const series = labelsOf(answer).map((label, place) => this.line(label, pointsOf(answer, place)));
    if (behind) series.unshift(this.soft(behind));
    const view = this.views.shape();
    this.box.hidden = false;
    this.empty.hidden = true;
    this.about.hidden = false;
    this.brush.element.hidden = false;
    this.shows = true;
    this.mark();
    setText(this.title, measure);
    const caption = `The same numbers as a table: ${measure}, with the error that holds ${percentWords(stream.beta)}`;
    this.said = this.sentence(measure, series);
    this.chart.draw({
      series,
      extent: view.extent,
      ends: this.many || behind !== null,
      unit: query.unit,
      noun: query.noun,
      timed: this.views.clock.timed,
      hatch: view.lost ? [view.lost] : [],
      say: this.said,
    });
    const named = (one) => (one.label === null ? { ...one, name: titleOf(query) } : one);
    const main = series.filter((one) => !one.soft).map(named);
    this.table.replaceChildren(seriesTable({ series: main, unit: query.unit, caption }));
    this.brush.draw(pointsOf(overview, 0), { from: this.views.clock.at(0), to: this.views.clock.at(this.feed.tick) });
    this.compare?.draw(lastOf(answer), answer.per);
    this.explain(answer);
  }

  line(label, points) {
    const last = points.findLast((point) => point.value !== null);
    const sub = last ? told(last.value, last.lower, last.upper) : "";
    const name = label === null ? spoken(this.state.window.words) : label;
    return { label, name, look: look(this.query, label ?? this.query.labels?.[0] ?? ""), sub, points };
  }

  soft(answer) {
    const made = this.line(null, pointsOf(answer, 0));
    const last = made.points.findLast((point) => point.value !== null);
    const sub = last ? estimate(last.value, last.lower, last.upper).error : "";
    return { ...made, name: `each ${spoken(answer.window.words)}`, soft: true, sub };
  }

  sentence(measure, series) {
    const told = series.filter((one) => !one.soft).map((one) => `${safe(one.name)} ${one.sub}`);
    return `${measure}, ${this.views.range().words}. Last: ${told.join("; ")}.`;
  }

  /** How many labels there are, how large the error is, and whether a longer window would say more. */
  explain(answer) {
    const { query } = this;
    const at = answer.tick.length - 1;
    const errors = answer.value.map((_, place) => answer.upper[place][at] - answer.value[place][at]);
    const error = Math.max(...errors.filter((one) => Number.isFinite(one)));
    if (!Number.isFinite(error)) return;
    const shown = `±\u00a0${number(error, error)}`;
    if (!query.description) {
      const listed = query.labels && this.many;
      const each = listed ? `${number(query.labels.length)} labels, declared before the start. ` : "";
      const many = this.many ? " each" : "";
      setText(this.lead, `${each}Error ${shown}${aRate(answer.per)}${many}.`);
    }
    const sizes = answer.value.map((row) => Math.abs(row[at] ?? 0)).sort((a, b) => a - b);
    const middle = sizes[Math.floor(sizes.length / 2)];
    const longer = this.longer();
    this.hint.hidden = !(longer && error > 0.6 * middle);
    if (this.hint.hidden) return;
    const use = { type: "button", class: "link", onclick: () => this.state.set({ window: longer }) };
    this.hint.replaceChildren(
      `At this window the error, ${shown}, is as large as many of the numbers. `,
      element("button", use, `Use ${longer.words.toLowerCase()}`),
    );
  }

  /** The next longer window of a week and more, or of any length, as far as there is a full one. */
  longer() {
    const { ticks } = this.state.window;
    const { tick } = this.feed;
    const full = windowsOf(this.stream).filter((one) => ticks !== null && one.ticks > ticks && one.ticks <= tick);
    return full.find((one) => one.seconds >= WEEK) ?? full[0];
  }

  /** The address of what is drawn, as a file. */
  viewPath(format) {
    const { ticks } = this.state.window;
    const { query, views, data } = this;
    const per = data.rateOf(query, ticks);
    return data.windowsPath(query, ticks, views.range(), { labels: this.picks, per, format });
  }
}
