/** One card for each query, as the stream describes it; queries that belong together share one. */

import { Bars } from "./bars.js";
import { Cuts } from "./cuts.js";
import { element } from "./dom.js";
import { Figure } from "./figure.js";
import { fraction, label as safe, number, percent, rough } from "./format.js";
import { downloads } from "./links.js";
import { Table } from "./table.js";
import { Triangle } from "./triangle.js";

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

/** A card: its element, its view, and the points (releases of the shown range, oldest first) that it draws. */
export function makeCard(group, chart, stream) {
  const [query] = group;
  const { words, together } = query.card;
  const view = viewOf(group, chart, stream);
  const heading = element("h3", {}, element("bdi", {}, group.map((one) => one.name).join(", ")));
  const empty = element("p", { class: "quiet empty" }, "Nothing has been released yet.");
  const card = element(
    "article",
    { class: "card", "data-view": query.card.view, "data-query": query.name },
    element("header", {}, heading, element("p", { class: "quiet" }, safe(group.length > 1 ? together : words))),
    empty,
    view.element,
    element("footer", {}, about(group, stream), downloads(group, stream)),
  );
  return { element: card, empty, view, names: group.map((one) => one.name), group, points: [] };
}

function viewOf(group, chart, stream) {
  const [query] = group;
  if (query.card.view === "bars") return new Bars(query, chart);
  if (query.card.view === "cuts") return new Cuts(query, chart);
  if (query.card.view === "triangle") return new Triangle(query, stream.clock);
  if (query.card.view === "ranking") return new Table(query, chart);
  const rising = [...group].sort((a, b) => a.card.order - b.card.order);
  const nameOf = ({ name, card }) => (group.length > 1 ? `${name} (${card.order})` : null);
  const parts = rising.map((one) => ({ query: one.name, name: nameOf(one) }));
  return new Figure(parts, chart, query);
}

function about(group, stream) {
  const rows = group.map((query) =>
    element(
      "dl",
      {},
      ...[
        ["Query", group.length > 1 ? query.name : null],
        ["Kind", query.ours ? null : `${query.kind}, which is not ours: its author answers for it`],
        ["Part of the guarantee", percent(fraction(query.share))],
        ["It pays", written(query.charge)],
        ["Mechanism", query.mechanism],
        ["Arithmetic", query.exactness],
        ["Noise (standard deviation)", query.stddev === null ? null : rough(query.stddev)],
        [
          `Error of all releases, with probability ${percent(1 - stream.beta)}`,
          query.error_bound === null ? noBound(query) : `at most ${rough(query.error_bound)}`,
        ],
        ["Labels", query.card.view === "bars" && query.labels ? number(query.labels.length) : null],
        ["Vertices", query.card.vertices ? number(query.card.vertices.length) : null],
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
