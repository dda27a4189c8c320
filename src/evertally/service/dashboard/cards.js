/** One card for each query, by its kind; quantiles of one column share one. */

import { Bars } from "./bars.js";
import { element } from "./dom.js";
import { Figure } from "./figure.js";
import { fraction, label as safe, number, percent, rough } from "./format.js";
import { downloads } from "./links.js";
import { Table } from "./table.js";

const TABLES = new Set(["top", "leader", "leaders", "streaming-top", "unknown-top", "unknown-histogram"]);

/** What each kind releases, in plain words. */
const WORDS = {
  counter: ({ column }) => (column ? `Sum of ${column} so far` : "Events so far"),
  mean: ({ column }) => `Mean of ${column} so far`,
  histogram: ({ column }) => `Events so far, by ${column}`,
  max: ({ column }) => `The largest count of any ${column}`,
  min: ({ column }) => `The smallest count of any ${column}`,
  quantile: ({ column, q }, several) =>
    several ? `Quantiles of the counts by ${column}` : `The ${q} quantile of the counts by ${column}`,
  query: ({ column }) => `Computed from the counts by ${column}`,
  top: ({ column, k }) => `The ${k} largest counts by ${column}, without their names`,
  leader: ({ column }) => `The ${column} with the largest count`,
  leaders: ({ column, k }) => `The ${k} names of ${column} with the largest counts`,
  "streaming-top": ({ column, k }) => `The ${k} most frequent, by ${column}`,
  "unknown-top": ({ column, k }) => `The ${k} most frequent that were found in ${column}`,
  "unknown-histogram": ({ column }) => `All that was found in ${column} often enough to be shown`,
};

/** The groups of queries that are drawn together, in the order of the stream. */
export function groups(queries) {
  const made = [];
  for (const query of queries) {
    const friend =
      query.kind === "quantile" &&
      made.find((group) => group[0].kind === "quantile" && group[0].column === query.column);
    if (friend) friend.push(query);
    else made.push([query]);
  }
  return made;
}

/** A card: its element, its view, and the points (releases of the shown range, oldest first) that it draws. */
export function makeCard(group, chart, stream) {
  const [query] = group;
  const view = viewOf(group, chart);
  const heading = element("h3", {}, element("bdi", {}, group.map((one) => one.name).join(", ")));
  const empty = element("p", { class: "quiet empty" }, "Nothing has been released yet.");
  const card = element(
    "article",
    { class: "card", "data-kind": query.kind, "data-query": query.name },
    element("header", {}, heading, element("p", { class: "quiet" }, safe(WORDS[query.kind](query, group.length > 1)))),
    empty,
    view.element,
    element("footer", {}, about(group, stream), downloads(group, stream)),
  );
  return { element: card, empty, view, names: group.map((one) => one.name), group, points: [] };
}

function viewOf(group, chart) {
  const [query] = group;
  if (query.kind === "histogram") return new Bars(query, chart);
  if (TABLES.has(query.kind)) return new Table(query, chart);
  const rising = [...group].sort((a, b) => fraction(a.q) - fraction(b.q));
  const parts = rising.map((one) => ({ query: one.name, name: group.length > 1 ? `${one.name} (${one.q})` : null }));
  return new Figure(parts, chart);
}

function about(group, stream) {
  const rows = group.map((query) =>
    element(
      "dl",
      {},
      ...[
        ["Query", group.length > 1 ? query.name : null],
        ["Part of the guarantee", percent(fraction(query.share))],
        ["It pays", written(query.charge)],
        ["Mechanism", query.mechanism],
        ["Arithmetic", query.exactness],
        ["Noise (standard deviation)", query.stddev === null ? null : rough(query.stddev)],
        [
          `Error of all releases, with probability ${percent(1 - stream.beta)}`,
          query.error_bound === null ? noBound(query) : `at most ${rough(query.error_bound)}`,
        ],
        ["Labels", query.kind === "histogram" ? number(query.labels.length) : null],
      ]
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))),
    ),
  );
  return element("details", {}, element("summary", {}, "How it is made"), ...rows);
}

const noBound = (query) => query.unbounded_because && `no bound: ${query.unbounded_because}`;

const written = (charge) =>
  Object.entries(charge)
    .filter(([, amount]) => amount !== null)
    .map(([name, amount]) => `${name} ${rough(amount)}`)
    .join(", ");
