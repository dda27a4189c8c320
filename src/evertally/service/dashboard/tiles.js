/** Tiles: one statistic as one number, with its error, its news and a small line. The interface is in cards/cards.js. */

import { pointsOf } from "./charts/points.js";
import { sparkline } from "./charts/spark.js";
import { isClear } from "./charts/hbar.js";
import { toldApart } from "./charts/places.js";
import { element, setText } from "./dom.js";
import { dayAndMonth, estimate, instant, label as safe, number } from "./format.js";
import { isPercentiles, namesOf, tiled } from "./cards/names.js";
import { numbersOf } from "./cards/numbers.js";
import {
  beforeWords,
  changeWords,
  counted,
  firstRelease,
  inWords,
  lastWords,
  nounsOf,
  sinceWords,
  titleOf,
  withinWords,
} from "./cards/words.js";

const DAY = 86400;

export { tiled };

export function makeTile(query, stream, { open = () => {} } = {}) {
  return new Tile(query, stream, open);
}

class Tile {
  constructor(query, stream, open) {
    Object.assign(this, { query, stream, names: [query.name], nameOf: namesOf(query) });
    this.needs = { windows: query.differences, history: !query.differences, exactness: true };
    this.title = element("strong", {}, safe(titleOf(query)));
    this.when = element("span");
    this.value = element("b");
    this.error = element("span", { class: "error" });
    this.news = element("span", { class: "news" });
    const line = element("span", { class: "tile-line" });
    this.element = element(
      "button",
      { type: "button", class: "card tile span-3", "data-tile": query.name, onclick: () => open(query.name) },
      element("span", { class: "head" }, this.title, this.when),
      element("span", { class: "big" }, this.value, this.error),
      this.news,
      line,
    );
    this.line = sparkline(line);
  }

  draw(view) {
    const numbers = numbersOf(this.query, view);
    const chosen = numbers ? this.choose(numbers, view) : null;
    setText(this.title, safe(this.titleFor(chosen)));
    setText(this.when, this.whenWords(numbers, view));
    if (!chosen || chosen.value === null) return this.nothing(view);
    const points = numbers.points(chosen.label);
    const times = rateOf(numbers.answer);
    const scaled = (end) => (end === null ? null : times === 1 ? end : outward(end * times, end === chosen.upper));
    const { value, error } = estimate(
      Math.round(chosen.value * times * 1e6) / 1e6,
      scaled(chosen.lower),
      scaled(chosen.upper),
    );
    setText(this.value, value);
    if (this.query.unit) this.value.append(element("small", {}, this.query.unit));
    setText(this.error, error);
    this.tellNews(numbers, chosen, points, view);
    this.line.draw(points, { from: view.extent.from });
  }

  /** Of several numbers the one that fits the window (active users) or says most (the highest percentile). */
  choose({ last }, view) {
    if (last.length <= 1) return last[0] ?? null;
    if (isPercentiles(this.query)) return last.findLast((entry) => entry.value !== null) ?? last.at(-1);
    const wanted = view.window.ticks === null ? null : inWords(view.window.words);
    return (
      last.find(
        (entry) => entry.label !== null && wanted !== null && safe(this.nameOf(entry.label)).includes(wanted),
      ) ?? last.at(view.window.ticks === null ? -1 : 0)
    );
  }

  titleFor(chosen) {
    const title = titleOf(this.query);
    return chosen?.label ? `${title}: ${this.nameOf(chosen.label)}` : title;
  }

  whenWords(numbers, view) {
    if (!this.query.differences) return numbers ? "now" : "";
    const total = view.window.ticks === null;
    return total ? (numbers ? sinceWords(numbers.answer) : "") : lastWords(view.window.words);
  }

  nothing(view) {
    setText(this.value, "–");
    const { windows, level } = view.exactness?.[this.query.name] ?? {};
    const exact = windows?.find((one) => one.ticks === view.window.ticks) ?? level;
    const known = typeof exact?.radius === "number";
    const unit = this.query.unit ? `\u00a0${this.query.unit}` : "";
    const radius = known ? `±\u00a0${number(Math.ceil(exact.radius))}${unit}, known already` : "";
    setText(this.error, isEarly(view) ? radius : "");
    const first = this.query.differences ? view.first : firstRelease(this.stream.clock);
    setText(this.news, this.missing({ ...view, first }));
    this.line.draw([]);
  }

  /** Why there is no number: it is too early, or there were too few events. */
  missing({ first, latest }) {
    if (first && isEarly({ first, latest }))
      return `first number ${typeof first === "number" ? "at" : "on"} ${dayOf(first)}`;
    return latest ? `too few ${nounsOf(this.query, this.stream)} to say` : "no number yet";
  }

  tellNews({ answer, labels }, chosen, points, view) {
    if (view.window.ticks === null) return setText(this.news, this.pace(answer, chosen));
    const news = answer ? this.changed(answer, labels.indexOf(chosen.label)) : levelled(points, view);
    if (news === null) return setText(this.news, "");
    const { mark, rest, clear } = changeWords(
      news,
      answer ? beforeWords(answer.window.words) : withinWords(view.window.words),
    );
    if (clear) this.news.replaceChildren(element("b", {}, mark), ` ${rest}`);
    else setText(this.news, `${mark} ${rest}`);
  }

  /** The change against the window before: with its own error where the service sends one, else by their intervals. */
  changed(answer, place) {
    const points = pointsOf(answer, place);
    const [before, now] = points.slice(-2);
    if (points.length < 2 || before.value === null || now.value === null) return null;
    const clear = answer.change?.clear?.[place]?.at(-1) ?? toldApart(before, now);
    return { change: now.value - before.value, clear, before: before.value, beforeClear: isClear(before) };
  }

  /** Of totals: how much that is a day. */
  pace(answer, chosen) {
    if (!answer) return "";
    if (!counted(answer) || typeof answer.start[0] !== "string" || answer.tick.length === 0) return "all so far";
    const days = (instant(answer.end.at(-1)) - instant(answer.start.at(-1))) / DAY;
    const rate = chosen.value / days;
    return days < 2 ? "all so far" : `about ${number(rate, Math.max(1, Math.abs(rate) / 100))} a day`;
  }
}

/** A level, such as who is active, against that of one window ago. Only intervals that do not meet are news. */
function levelled(points, { window }) {
  const known = points.filter((point) => point.value !== null);
  const now = known.at(-1);
  const before = known.findLast((point) => point.tick <= now.tick - window.ticks);
  if (!now || !before || now.lower === null || before.lower === null) return null;
  const clear = now.lower > before.upper || now.upper < before.lower;
  return { change: now.value - before.value, clear, before: before.value, beforeClear: isClear(before) };
}

/** Whether no window of the chosen length is full yet. */
const isEarly = ({ first, latest }) => !latest || (first && instant(first) > instant(latest.time));

/** Rates are shown as what they add up to in their window. */
const rateOf = (answer) => (answer?.per && answer.window ? answer.window.ticks / answer.per.ticks : 1);

const outward = (end, up) => (up ? Math.ceil(end - 1e-6) : Math.floor(end + 1e-6));
const dayOf = (time) => (typeof time === "number" ? number(time) : dayAndMonth(instant(time)));
