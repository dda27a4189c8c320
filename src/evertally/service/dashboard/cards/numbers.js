/** The numbers of one statistic as a card draws them, whether they come from windows or from releases as they are. */

import { entries, historyOf, labelsOf, lastOf, pointsOf } from "../charts/points.js";

const TOO_WIDE = 0.15; // of the declared range: half an interval above it says nothing

/**
 * {answer, labels, last: [{label, value, lower, upper, stddev}], points(label)}, or null where nothing is there yet.
 *
 * `answer` is that of v1/windows, null for statistics without windows.
 */
export function numbersOf(query, view, kind = "series") {
  const answer = query.differences ? view[kind]?.[query.name] : null;
  if (answer) {
    const labels = labelsOf(answer);
    const enough = enoughFor(query);
    const points = (label) => pointsOf(answer, labels.indexOf(label)).map(enough);
    return { answer, labels, last: lastOf(answer).map(enough), points };
  }
  const columns = view.latest?.queries[query.name];
  if (query.differences || !columns) return null;
  const last = entries(columns);
  const releases = view.history?.[query.name] ?? [];
  return {
    answer: null,
    labels: last.map((entry) => entry.label),
    last,
    points: (label) => historyOf(releases, query.name, label),
  };
}

/** Means and percentiles of too few are not shown: their intervals cover much of all that was declared. */
function enoughFor({ edges, range: declared, card }) {
  const ends = declared ?? edges;
  if (!ends || card.view !== "figure") return (entry) => entry;
  // On a scale of factors an interval is as wide as it looks there.
  const scaled = card.scale === "log" ? (value) => Math.log(Math.max(value, ends[0])) : (value) => value;
  const range = scaled(ends.at(-1)) - scaled(ends[0]);
  return (entry) =>
    entry.lower !== null && (scaled(entry.upper) - scaled(entry.lower)) / 2 > TOO_WIDE * range
      ? { ...entry, value: null, lower: null, upper: null }
      : entry;
}
