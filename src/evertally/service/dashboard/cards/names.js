/** What readers call the categories of a statistic, where that is not what a release calls them. */

const PARTS = { 50: "half", 25: "1 in 4", 75: "3 in 4", 10: "1 in 10", 90: "9 in 10", 95: "19 in 20", 99: "99 in 100" };

/** From a released label to the name that is shown; null stays null. */
export function namesOf({ labels, card }) {
  const known = new Map((card.names ? labels : []).map((label, i) => [String(label), inPlainWords(card.names[i])]));
  return (label) => (card.places && label !== null ? ordinal(Number(label)) : (known.get(label) ?? label));
}

/** "p90" as "9 in 10": that so many are below is what it says. */
function inPlainWords(name) {
  const [, percent] = /^p(\d+(?:\.\d+)?)$/.exec(name) ?? [];
  if (percent === undefined) return name;
  return PARTS[percent] ?? `${percent} in 100`;
}

export const isPercentiles = ({ card }) =>
  (card.names ?? []).length > 0 && card.names.every((name) => /^p\d/.test(name));

function ordinal(rank) {
  if (!Number.isInteger(rank)) return String(rank);
  if (rank === 1) return "largest";
  const ending = { one: "st", two: "nd", few: "rd", other: "th" }[
    new Intl.PluralRules("en", { type: "ordinal" }).select(rank)
  ];
  return `${rank}${ending} largest`;
}

export const FIRST_TILES = 4; // that are shown before the reader asks for all

/** The statistics that one number says, in the order of the stream. */
export const tiled = (queries) =>
  queries.filter(({ card, labels }) => card.view === "figure" && !card.apart && (labels?.length ?? 1) <= 8);

const NUMBER = /^[<>=≤≥ ]*(-?\d+(?:\.\d+)?)/;
const FEW = 24; // labels

/** Whether labels are numbers in their order (degrees, sizes): that order is kept, whatever their values are. */
export function areOrdered(labels) {
  const found = (labels ?? []).map((label) => NUMBER.exec(label)?.[1]);
  if (found.length < 4 || found.length > FEW || found.includes(undefined)) return false;
  return found.every((text, i) => i === 0 || Number(text) > Number(found[i - 1]) || i === found.length - 1);
}
