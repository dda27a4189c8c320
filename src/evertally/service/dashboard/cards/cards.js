/**
 * One card for each statistic. The interface between the cards and the page around them.
 *
 * groups(queries) -> [[query, ...], ...]      queries that share a card, in the order of the stream
 * makeCard(queries, stream, {open, ask, large}) -> {element, title, names, needs, span, draw(view), tell()}
 *     open(name): the reader wants the page of this statistic. ask(name, {search, sort, clear, offset}): a long list wants
 *     other rows of v1/labels (answered by a draw with new `labels`). large: for a page of its own, without the button.
 *     tell(): the last values in words, for a screen reader.
 * layOut(cards): gives the elements their widths, so that rows of twelve columns are full (class span-4, span-8, ...).
 * tiled(queries) -> the queries that have a tile (one number says it), in order.      [tiles.js]
 * makeTile(query, stream, {open}) -> {element, names, needs, draw(view)}               [tiles.js]
 *
 * needs, of a card or tile: which answers `view` must have for its `names`. The page asks the union of them.
 *     windows: v1/windows of the chosen window, over the shown range
 *     finer:   the same with windows of one day (one tick where ticks are longer), if the chosen window is longer than that
 *     whole:   the same with one window, the shown range itself (window=total where all is shown): for rankings
 *     history: v1/releases over the shown range (statistics without windows; `differences` is false)
 *     labels:  v1/labels of the chosen window: declared lists of more than 50 labels
 *     exactness: v1/exactness
 *
 * view = {
 *   window: {ticks, seconds, words} | {ticks: null, words: "Total"}      the switch
 *   range:  {from, to, words}           ticks shown, `words`: "90 days"
 *   extent: {from, to}                  the same on the time axis: seconds since 1970, or integers of an integer clock
 *   series, finer, whole, labels, exactness: {query name: answer | undefined}
 *   history: {query name: [TickAnswer, ...]}          oldest first
 *   latest: TickAnswer | null
 *   state: "before" | "live" | "paused" | "lost" | "ended"
 *   lost: null | {from, to}             on the time axis: what has had no news, drawn hatched
 *   first: when the first full window of `window` ends, a time as in answers ("2013-01-08T05:00:00Z"), or null
 *   zoom(from, to), back(), zoomed      by the chart's drag, double click, Esc (on the time axis); may be left out
 * }
 *
 * Rates: ask v1/windows with per = query.per, else a day, where the window is longer than a day; else without.
 *
 * lineChart(element, {zoom, back}) -> {draw(data), table(), clear()}                   [charts/line.js]
 *     data = {series: [{label, name, look, soft, sub, points: [{x, value, lower, upper, start, end}]}],
 *             extent: {from, to}, zero, ends, log, unit, noun, hatch: [{from, to, words}], say, timed, height}
 *     `soft`: a thin line behind the others. `sub`: what stands under the end label. table(): the same numbers, an element.
 * pointsOf(answer, place) -> points of one label of a v1/windows answer                [charts/points.js]
 * historyOf(releases, name, label) -> points of a statistic without windows            [charts/points.js]
 * sparkline(element) -> {draw(points, extent)}                                         [charts/spark.js]
 * look(query, label) -> {colour: 0..5, dash: 0..2, className: "look-0 dash-0"}         [charts/look.js]
 * lookKey(look) -> a short line of that look, an svg element                           [charts/look.js]
 * icon(name) -> svg element                                                            [charts/icons.js]
 * format.js: estimate(value, lower, upper) -> {value: "159", error: "± 8"}; number, axisNumber, percent, rough, duration,
 *     label, moment(time) -> "6 Dec 05:00 UTC", period(start, end) -> "29 Nov to 5 Dec", dayAndMonth, setYear(time).
 */

import { barsCard } from "./bars.js";
import { CutsCard } from "./cuts.js";
import { FigureCard } from "./figure.js";
import { LeadsCard } from "./leads.js";
import { ListCard, LONG } from "./list.js";
import { RankingCard } from "./ranking.js";
import { TriangleCard } from "./triangle.js";

const COLUMNS = 12;

/** The groups of queries that are drawn together, in the order of the stream. */
export function groups(queries) {
  const made = [];
  for (const query of queries) {
    const friend =
      query.card.together && made.find(([first]) => first.kind === query.kind && first.column === query.column);
    if (friend) friend.push(query);
    else made.push([query]);
  }
  return made;
}

export function makeCard(queries, stream, options = {}) {
  const card = cardOf(queries, stream, options);
  card.names = queries.map((query) => query.name);
  return card;
}

function cardOf(queries, stream, options) {
  const [{ card, labels, differences }] = queries;
  switch (card.view) {
    case "bars":
      return labels !== null && labels.length > LONG && differences
        ? new ListCard(queries, stream, options)
        : barsCard(queries, stream, options);
    case "cuts":
      return new CutsCard(queries, stream, options);
    case "triangle":
      return new TriangleCard(queries, stream, options);
    case "ranking":
      return card.values === "labels" ? new LeadsCard(queries, stream, options) : new RankingCard(queries, stream, options);
    default:
      return new FigureCard(queries, stream, options);
  }
}

/** Full rows: a card that does not fit begins the next row, and the last of a row takes what is left. */
export function layOut(cards) {
  let [row, used] = [[], 0];
  const close = () => {
    if (row.length && used < COLUMNS) row.at(-1).width += COLUMNS - used;
    if (row.length === 2 && row.every((one) => one.card.span === 4)) for (const one of row) one.width = 6;
    for (const { card, width } of row) {
      card.element.classList.remove("span-4", "span-6", "span-8", "span-12");
      card.element.classList.add(`span-${width}`);
    }
    [row, used] = [[], 0];
  };
  for (const card of cards) {
    if (used + card.span > COLUMNS) close();
    row.push({ card, width: card.span });
    used += card.span;
  }
  close();
}
