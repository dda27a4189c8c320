/** What the numbers of a statistic are, in words: "Departures per day, 7-day windows". */

import { inWords, nounsOf, titleOf as rawTitle, unitWords, withNouns } from "./cards/words.js";
import { label as safe } from "./format.js";

const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const titleOf = (query) => safe(rawTitle(query));
export const spoken = inWords;

/** What the service says is published, with the stream's own word for events: "Departures so far, by carrier". */
export function publishedWords(query, stream) {
  return safe(withNouns(query.card.words.replace(/\.$/, ""), query, stream));
}

/** What one number is, by its name: what is counted, or the title where it is no count of events. */
function subjectOf(query, stream) {
  if (query.unit) return `${titleOf(query)} (${safe(query.unit)}),`;
  return /^Events\b/.test(query.card.words) ? upper(safe(nounsOf(query, stream))) : `${titleOf(query)},`;
}

/** Of an answer of v1/windows: what one number is. */
export const measureOf = (query, answer, stream) => `${subjectOf(query, stream)} ${unitWords(answer)}`;

/** " a day", " an hour": the end of "± 8 a day". */
export function aRate(per) {
  if (!per) return "";
  const words = inWords(per.words);
  if (/^\d/.test(words)) return ` per ${words}`;
  return ` ${/^hour/.test(words) ? "an" : "a"} ${words}`;
}
