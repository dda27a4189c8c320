/** One number, or a few that belong together (active users, percentiles, expressions): in words, and as lines. */

import { isClear } from "../charts/hbar.js";
import { lineChart } from "../charts/line.js";
import { look, lookAt } from "../charts/look.js";
import { element, setText } from "../dom.js";
import { aloud, estimate, label as safe, told } from "../format.js";
import { Frame } from "./frame.js";
import { FIRST_TILES, isPercentiles, namesOf, tiled } from "./names.js";
import { numbersOf } from "./numbers.js";
import { counted, inWords, nounsOf, plainWords, titleOf, underTitle, unitWords } from "./words.js";

export class FigureCard {
  constructor(queries, stream, options) {
    this.queries = [...queries].sort((a, b) => (a.card.order ?? 0) - (b.card.order ?? 0));
    this.stream = stream;
    const [query] = this.queries;
    const windowed = this.queries.some((one) => one.differences);
    this.needs = {
      windows: windowed,
      finer: windowed && queries.length === 1 && query.labels === null,
      history: !windowed,
      exactness: true,
    };
    this.frame = new Frame(queries, stream, { ...options, table: () => this.table() });
    Object.assign(this, {
      element: this.frame.element,
      title: this.frame.title,
      span: this.single() && stream.queries[0].name === query.name ? 8 : 4,
    });
    this.values = element("dl", { class: "values" });
    const first = tiled(stream.queries).slice(0, FIRST_TILES);
    this.isTiled = options.large !== true && first.some((one) => one.name === query.name);
    // Numbers of different units have an axis each; how many there are is known before the first release.
    const count = query.card.apart ? (query.labels?.length ?? 1) : 1;
    this.boxes = Array.from({ length: count }, () => element("div", { class: count > 1 ? "small" : "" }));
    const zoom = { zoom: (from, to) => this.view?.zoom?.(from, to), back: () => this.view?.back?.() };
    this.charts = this.boxes.map((box) => lineChart(box, zoom));
    this.frame.content.append(this.values, ...this.boxes);
  }

  single() {
    return this.queries.length === 1 && this.queries[0].labels === null && this.queries[0].card.order === null;
  }

  draw(view) {
    this.view = view;
    this.series = this.queries.flatMap((query) => this.seriesOf(query, view));
    const finer = this.finer(view);
    this.behind = finer !== null;
    if (this.series.length === 1 && finer) {
      const [{ last }] = this.series;
      const { error } = estimate(last.value, last.lower, last.upper);
      const name = inWords(view.window.words);
      Object.assign(this.series[0], { name, tip: name, sub: error });
    }
    this.frame.setSub(this.words(view));
    if (!this.series.some((one) => one.last?.value !== null)) {
      this.shown = [];
      return this.frame.nothing(view);
    }
    this.frame.show(true);
    this.fill();
    this.shown = finer ? [finer, ...this.series] : this.series;
    const few = this.series.filter((one) => one.last.value === null).map((one) => safe(one.name ?? this.title));
    this.frame.setFoot(few.length ? `Too few ${nounsOf(this.queries[0], this.stream)} to say: ${few.join(", ")}.` : "");
    const drawn = this.charts.length > 1 ? this.series.map((one) => [one]) : [this.shown];
    drawn.forEach((series, i) => this.charts[i]?.draw(this.chartOf(series, view)));
    this.frame.renew();
  }

  chartOf(series, view) {
    const [query] = this.queries;
    return {
      series,
      extent: view.extent,
      // Where numbers stand in large type, they are the key.
      ends: series.length > 1 && (this.values.hidden || series.some((one) => one.soft)),
      log: query.card.scale === "log",
      zero: series.length > 1 && !series.some((one) => one.soft) && query.card.scale !== "log",
      lanes: false,
      unit: query.unit ?? null,
      hatch: view.lost ? [{ ...view.lost, words: "no news" }] : [],
      timed: this.stream.clock.tick_seconds !== null,
      say: this.sentence(series, view),
      caption: `${this.title}, ${this.words(view)}`,
    };
  }

  seriesOf(query, view) {
    const numbers = numbersOf(query, view);
    if (!numbers) return [];
    const nameOf = namesOf(query);
    return numbers.last.map((last, i) => {
      const group = this.queries.length > 1 ? `${titleOf(query)} (${query.card.order})` : null;
      const name = nameOf(last.label) ?? group;
      const place = this.queries.length > 1 ? this.queries.indexOf(query) : i;
      const own = last.label === null || query.labels === null ? lookAt(place) : look(query, last.label);
      const { value, error } = estimate(last.value, last.lower, last.upper);
      const sub = isPercentiles(query) ? told(last.value, null, null, query.unit).replace(/ \(.*/, "") : error;
      return {
        label: last.label,
        name,
        tip: name ?? this.title,
        look: own,
        last,
        sub: last.value === null ? "" : name === null ? value : sub,
        points: numbers.points(last.label),
      };
    });
  }

  /** Single days behind longer windows: the reader sees what a longer window buys. */
  finer(view) {
    const [query] = this.queries;
    const numbers = this.needs.finer && view.finer?.[query.name] ? numbersOf(query, view, "finer") : null;
    if (!numbers || !numbers.last.length || view.window.ticks === null) return null;
    const { words, ticks } = numbers.answer.window;
    if (ticks >= view.window.ticks || !sameUnit(numbers.answer, view.series?.[query.name])) return null;
    const points = numbers.points(null);
    if (points.filter(isClear).length < points.length / 2) return null; // single days that say nothing
    const name = `each ${inWords(words)}`;
    const [last] = numbers.last;
    const sub = last.value === null ? "" : estimate(last.value, last.lower, last.upper).error;
    return { label: null, name, tip: name, soft: true, look: lookAt(0), last, sub, points };
  }

  /** The numbers in large type, unless there is a tile with it, or they stand at the ends of lines. */
  fill() {
    const many = this.series.length > 1;
    this.values.hidden = many ? isPercentiles(this.queries[0]) : this.isTiled;
    if (this.values.hidden) return this.values.replaceChildren();
    while (this.values.children.length > this.series.length) this.values.lastChild.remove();
    while (this.values.children.length < this.series.length)
      this.values.append(element("div", {}, element("dt"), element("dd", {}, element("b"), " ", element("span"))));
    this.series.forEach(({ name, look: own, last }, i) => {
      const box = this.values.children[i];
      const { value, error } = estimate(last.value, last.lower, last.upper);
      box.className = many ? `keyed ${own.className}` : "";
      box.querySelector("dt").hidden = !many;
      setText(box.querySelector("dt"), safe(name ?? this.title));
      setText(box.querySelector("b"), value);
      setText(box.querySelector("span"), error);
    });
  }

  words(view) {
    const [query] = this.queries;
    const answer = query.differences ? view.series?.[query.name] : null;
    const called = safe(plainWords(query, this.stream, this.queries.length > 1));
    if (!answer || answer.tick.length === 0) {
      const short = query.title ? called.replace(/^Different [^,]*, /, "") : called;
      return query.description ?? (short === query.title ? "" : short);
    }
    const unit =
      this.behind && answer.per && answer.window?.ticks !== answer.per.ticks
        ? `per ${inWords(answer.per.words)}`
        : unitWords(answer);
    if (isPercentiles(query) && !query.description) return `${namesList(query)} are within, ${unit}`;
    return underTitle(query, called, unit);
  }

  sentence(series, view) {
    const last = series.filter((one) => !one.soft && one.last.value !== null);
    const values = last.map(
      ({ name, last: { value, lower, upper } }) =>
        `${name ? `${safe(name)} ` : ""}${told(value, lower, upper, this.queries[0].unit)}`,
    );
    const scale = this.queries[0].card.scale === "log" ? ", on a logarithmic scale" : "";
    return aloud(
      `${safe(this.title)}, ${this.words(view)}, ${view.range?.words ?? ""}${scale}. Last: ${values.join("; ")}.`,
    );
  }

  table() {
    if (this.charts.length === 1) return this.charts[0].table();
    return element("div", {}, ...this.charts.filter((chart) => chart.data).map((chart) => chart.table()));
  }

  tell() {
    const values = (this.series ?? [])
      .filter((one) => one.last.value !== null)
      .map(({ name, last }) => `${name ? `${safe(name)} ` : ""}${told(last.value, last.lower, last.upper)}`);
    return aloud(values.join("; "));
  }
}

const namesList = (query) => {
  const names = query.labels.map((label) => namesOf(query)(String(label)));
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
};

/** Two answers whose numbers can stand on one axis: counts per the same time. (Means of single days are mostly noise.) */
function sameUnit(a, b) {
  if (!b || !counted(a) || !counted(b)) return false;
  const per = (answer) => answer.per?.ticks ?? answer.window?.ticks;
  return per(a) === per(b);
}
