/** What readers call the categories of a query, where that is not what a release calls them. */

/** From a released label to the name that is shown; null stays null. */
export function namesOf({ labels, card }) {
  const known = new Map((card.names ? labels : []).map((label, i) => [String(label), card.names[i]]));
  return (label) => known.get(label) ?? label;
}
