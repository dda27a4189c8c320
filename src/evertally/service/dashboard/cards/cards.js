/**
 * One card for each statistic. The interface between the cards and the page around them.
 *
 * groups(queries) -> [[query, ...], ...]      queries that share a card, in the order of the stream
 * makeCard(queries, stream, {open, ask, large}) -> {element, title, names, needs, span, draw(view), tell()}
 *     open(name): the reader wants the page of this statistic. ask(name, {search, sort, clear, offset}): a long list wants
 *     other rows of v1/labels (answered by a draw with new `labels`). large: for a page of its own, without the button.
 *     tell(): the last values in words, for a screen reader.
 * layOut(cards): sorts the list into the order in which the cards fill rows of twelve columns (and their elements, where
 *     they are in the page), and gives the elements their widths: classes span-4, span-8, ...
 * tiled(queries) -> the queries that have a tile (one number says it), in order.      [tiles.js]
 * makeTile(query, stream, {open}) -> {element, names, needs, draw(view)}               [tiles.js]
 *
 * needs, of a card or tile: which answers `view` must have for its `names`. The page asks the union of them.
 *     windows: v1/windows of the chosen window, over the shown range
 *     finer:   the same with windows of one day (one tick where ticks are longer), if the chosen window is longer than that
 *     whole:   the same with one window, the shown range itself (window=total with the switch at Total): for rankings
 *     listed:  v1/labels of the shown range, of labels that are found (`running`): for rankings
 *     history: v1/releases over the shown range (statistics without windows; `differences` is false)
 *     labels:  v1/labels of the chosen window: declared lists of more than 50 labels
 *     exactness: v1/exactness
 *
 * view = {
 *   window: {ticks, seconds, words} | {ticks: null, words: "Total"}      the switch
 *   range:  {from, to, words}           ticks shown, `words`: "90 days"
 *   extent: {from, to}                  the same on the time axis: seconds since 1970, or integers of an integer clock
 *   series, finer, whole, listed, labels, exactness: {query name: answer | undefined}
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

import { arrange } from "../dom.js";
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
      return card.values === "labels"
        ? new LeadsCard(queries, stream, options)
        : new RankingCard(queries, stream, options);
    default:
      return new FigureCard(queries, stream, options);
  }
}

/** Full rows of twelve columns, wide cards left and right by turns: a narrow card is taken from further down if need be. */
export function layOut(cards) {
  const left = [...cards];
  const ordered = [];
  let wideFirst = true;
  while (left.length) {
    const row = takeRow(left);
    const wide = row.length === 2 && row.some((card) => card.span === 8);
    if (wide) {
      row.sort((a, b) => (wideFirst ? b.span - a.span : a.span - b.span));
      wideFirst = !wideFirst;
    }
    const width = wide ? null : COLUMNS / row.length;
    for (const card of row) {
      card.element.classList.remove("span-4", "span-6", "span-8", "span-12");
      card.element.classList.add(`span-${width ?? card.span}`);
    }
    ordered.push(...row);
  }
  cards.splice(0, cards.length, ...ordered);
  const parent = cards[0]?.element.parentElement;
  if (parent)
    arrange(
      parent,
      cards.map((card) => card.element),
    );
  return cards;
}

/** The first card that is left, and those that fill its row: one narrow beside a wide one, or three narrow ones. */
function takeRow(left) {
  const row = [left.shift()];
  const take = (span) => {
    const place = left.findIndex((card) => card.span === span);
    if (place >= 0) row.push(...left.splice(place, 1));
  };
  if (row[0].span === 8) take(4);
  else if (left[0]?.span === 8) take(8);
  else for (let i = 0; i < 2; i++) if (left[0]?.span === 4) take(4);
  if (row.length === 2 && row[0].span === 4 && row[1].span === 4 && left.some((card) => card.span === 4)) take(4);
  return row;
}
