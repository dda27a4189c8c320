/** What cards and tiles say about windows, rates, changes and errors. */

import { dayAndMonth, instant, moment, number, plural } from "../format.js";
import { isTotal } from "../charts/points.js";

export const titleOf = (query) => query.title ?? query.name;
const nounOf = (query, stream) => query.noun ?? stream.noun ?? "event";
export const nounsOf = (query, stream) => plural(nounOf(query, stream));

/** "per day, 7-day windows", "per 6 hours", "since 1 Jan": the unit of the numbers of an answer of v1/windows. */
export function unitWords(answer) {
  if (isTotal(answer)) return sinceWords(answer);
  const { window, per } = answer;
  const length = inWords(window.words);
  if (!per) return counted(answer) ? `per ${length}` : windowsWords(length);
  return per.ticks === window.ticks
    ? `per ${inWords(per.words)}`
    : `per ${inWords(per.words)}, ${windowsWords(length)}`;
}

export const sinceWords = ({ start }) =>
  start.length === 0
    ? "since the start"
    : typeof start[0] === "number"
      ? `since ${number(start[0])}`
      : `since ${dayAndMonth(instant(start[0]))}`;

/** Whether the numbers add up (counts and sums have a standard deviation); those of means and percentiles do not. */
export const counted = (answer) => answer.stddev.some((one) => one !== null);

/** "1 day" and "Day" as "day"; "6 h" as "6 hours". */
export function inWords(words) {
  const [, count, unit] = /^(?:(\d+) )?([a-zA-Z]+)$/.exec(words) ?? [null, null, words];
  const whole = { h: "hour", d: "day", min: "minute", s: "second" }[unit] ?? unit.toLowerCase().replace(/s$/, "");
  return count && count !== "1" ? `${count} ${whole}s` : whole;
}

/** "7 days" as "7-day windows". */
function windowsWords(words) {
  const [, count, unit] = /^(\d+) (\w+?)s?$/.exec(words) ?? [];
  return count ? `${count}-${unit} windows` : `${words} by ${words}`;
}

/** "last 7 days", "last day". */
export const lastWords = (words) => `last ${inWords(words)}`;

/**
 * The news against the window before: {mark: "▲ 3.7 %" | "≈ no clear change", rest: "on the 7 days before"}.
 *
 * An arrow only where the change exceeds its own error; parts of a hundred only where what was before is above zero.
 */
export function changeWords({ change, clear, before, beforeClear }, rest) {
  if (!clear) return { mark: "≈ no clear change", rest, clear };
  const arrow = change > 0 ? "▲" : "▼";
  const part = Math.abs((change / before) * 100);
  const size =
    beforeClear && before > 0
      ? `${number(part, part < 9.5 ? 0.5 : 5)}\u00a0%`
      : number(Math.abs(change), Math.abs(change) / 5);
  return { mark: `${arrow}\u00a0${size}`, rest, clear };
}

/** "on the 7 days before", "on the day before". */
export const beforeWords = (words) => `on the ${inWords(words)} before`;

/** "in 7 days", "in a day": of levels, which are no sums. */
export const withinWords = (words) =>
  /^\d/.test(inWords(words)) ? `in ${inWords(words)}` : `in one ${inWords(words)}`;

/** What an empty card says: when its first number comes, and how exact it will be. */
export function emptyWords(query, stream, view) {
  if (query.card.view === "ranking" && query.labels === null)
    return [
      `No ${query.column ?? "name"} stands out yet`,
      "A name appears once it is frequent enough to be shown safely.",
    ];
  const first = query.differences ? view.first : firstRelease(stream.clock);
  const early = !view.latest || (first && instant(first) > instant(view.latest.time));
  if (!early) return [`Too few ${nounsOf(query, stream)} to say`, ""];
  const exact = exactWords(view.exactness?.[query.name], view.window.ticks, query);
  return [first ? `The first number comes ${onWords(first)}` : "No numbers yet", exact ?? ""];
}

/** "on 8 Jan 05:00 UTC"; on a clock of integers "at time 2,000". */
const onWords = (time) => `${typeof time === "number" ? "at" : "on"} ${moment(time)}`;

export function firstRelease({ start, tick_seconds: seconds }) {
  return seconds === null ? null : new Date((instant(start) + seconds) * 1000).toISOString();
}

/** What a statistic is, in the words of its kind; windows are not "so far". */
export function plainWords(query, stream, several = false) {
  const words = several ? query.card.together : query.card.words;
  return withNouns(query.differences ? words.replace(/ so far/, "") : words, query, stream);
}

/** The stream's own word for events, and a statistic's own word for those it counts. */
export function withNouns(words, query, stream) {
  const nouns = nounsOf(query, stream);
  const upper = nouns.charAt(0).toUpperCase() + nouns.slice(1);
  return words.replace(/^Events\b/, upper).replace(/^Different users\b/, query.noun ? `Different ${nouns}` : "$&");
}

/** What stands under the title of a card: its description, and what its numbers are. */
export const underTitle = (query, called, unit) =>
  query.description ? `${query.description} · ${unit}` : query.title ? unit : `${called}, ${unit}`;

/** "Its error is known before any data: ± 56 a day, ± 10 a day in 7-day windows." */
function exactWords(exactness, longest, { unit }) {
  if (!exactness) return null;
  const { windows, level, because } = exactness;
  const amount = (radius, digits = radius) => `±\u00a0${number(radius, digits)}${unit ? `\u00a0${unit}` : ""}`;
  const known = windows.filter((one) => one.radius !== null && (longest === null || one.ticks <= longest));
  if (!known.length) return level ? `Its error is known before any data: ${amount(Math.ceil(level.radius))}.` : because;
  const told = known.slice(-2).map(({ words, radius, per }) => {
    if (!per) return `${amount(Math.ceil(radius))} in ${inWords(words)}`;
    const rate = `${amount(per.radius)} a\u00a0${inWords(per.words)}`;
    return inWords(words) === inWords(per.words) ? rate : `${rate} in ${windowsWords(inWords(words))}`;
  });
  return `Its error is known before any data: ${told.join(", ")}.`;
}
