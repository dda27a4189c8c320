/** What the numbers of a statistic are, in words: "Departures per day, 7-day windows". */

import { inWords, nounsOf, titleOf as rawTitle, unitWords } from "./cards/words.js";
import { label as safe } from "./format.js";

const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const titleOf = (query) => safe(rawTitle(query));
export const spoken = inWords;

/** Of an answer of v1/windows: what one number is. */
export function measureOf(query, answer, stream) {
  if (query.unit) return `${titleOf(query)} (${safe(query.unit)}), ${unitWords(answer)}`;
  return `${upper(safe(nounsOf(query, stream)))} ${unitWords(answer)}`;
}

/** " a day", " an hour": the end of "± 8 a day". */
export function aRate(per) {
  if (!per) return "";
  const words = inWords(per.words);
  if (/^\d/.test(words)) return ` per ${words}`;
  return ` ${/^hour/.test(words) ? "an" : "a"} ${words}`;
}
