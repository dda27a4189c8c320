/** How a statistic is made, in words; and for specialists by the names of its parts. */

import { element } from "./dom.js";
import { duration, fraction, label as safe, number, percent, plural, rough } from "./format.js";
import { publishedWords, titleOf } from "./measure.js";

export function howItIsMade(group, stream) {
  const [query] = group;
  const part = group.reduce((sum, one) => sum + fraction(one.share), 0);
  return [
    element("h3", {}, "How it is made"),
    element("ol", {}, ...steps(query, stream).map((step) => element("li", {}, step))),
    element("p", { class: "quiet" }, `${percent(part)} of the privacy budget.`),
    element(
      "details",
      { class: "specialists" },
      element("summary", {}, "For specialists"),
      ...group.map((one) => facts(one, stream, group.length > 1)),
    ),
  ];
}

function steps(query, stream) {
  const length = stream.clock.tick_seconds;
  const every = length === null ? "At every step of the clock" : `Every ${everyOf(length)}`;
  const first = query.card.made ? safe(query.card.made) : `What is published: ${publishedWords(query, stream)}.`;
  if (!query.differences) {
    return [
      first,
      `${every} new numbers are published with random noise in them.`,
      "Each is published with an interval, or a bound, for its error.",
    ];
  }
  return [
    first,
    `${every} the totals are published with random noise in them. The noise does not depend on the data.`,
    "A window is worked out from the totals published at its two ends. " +
      "The data are not asked again, so it costs no privacy.",
    "Its error is known and sent along with it.",
  ];
}

/** "6 hours", "day": how often. */
function everyOf(seconds) {
  const [count, unit] = duration(seconds).split(" ");
  const name = { d: "day", h: "hour", min: "minute", s: "second" }[unit];
  if (!name || duration(seconds).split(" ").length > 2) return duration(seconds);
  return count === "1" ? name : `${count} ${plural(name)}`;
}

function facts(query, stream, several) {
  const bound =
    query.error_bound === null
      ? query.unbounded_because && `no bound: ${query.unbounded_because}`
      : `at most ${rough(query.error_bound)}`;
  const rows = [
    ["Statistic", several ? titleOf(query) : null],
    ["Name in the specification", query.name],
    ["Kind", query.ours ? query.kind : `${query.kind}, which is not ours: its author answers for it`],
    ["It pays", paid(query.charge)],
    ["Mechanism", query.mechanism],
    ["Arithmetic", query.exactness],
    ["Noise (standard deviation)", query.stddev === null ? null : rough(query.stddev)],
    [`Error of all releases, with probability ${percent(1 - stream.beta)}`, bound],
    ["Labels", query.labels ? number(query.labels.length) : null],
    ["Vertices", query.card.vertices ? number(query.card.vertices.length) : null],
  ];
  const shown = rows.filter(([, value]) => value !== null && value !== undefined);
  return element(
    "dl",
    {},
    ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, safe(String(value)))]),
  );
}

const paid = (charge) =>
  Object.entries(charge)
    .filter(([, amount]) => amount !== null)
    .map(([name, amount]) => `${name} ${rough(amount)}`)
    .join(", ");
