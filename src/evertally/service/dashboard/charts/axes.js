/** What stands around lines: marks of both axes, and the names at their ends. Nothing of it is ever cut. */

import { label as safe } from "../format.js";
import { timeMarks } from "./scale.js";
import { shortened, svg, widthOf } from "./svg.js";

const NAME = 116; // pixels for a name at the end of its line
const WORD = 14; // pixels from one line of words to the next
const BETWEEN = 12; // pixels, at least, between two words of the time axis

export const marginFor = (texts) => Math.max(12, ...texts.map((text) => widthOf(text))) + 10;

export function axes(frame, places, x, timed) {
  const { width, height, left, right, bottom, axis } = frame;
  const group = svg("g", { class: "axes" });
  let lowest = -Infinity; // where the lane above has its last word
  places.forEach(({ y, from }, i) => {
    if (i) group.append(svg("line", { class: "rule", x1: 0, x2: width, y1: from - 4, y2: from - 4 }));
    for (const { value, text } of axis.marks) {
      const at = y(value);
      if (at < lowest + WORD) continue;
      const kind = value === 0 ? "rule zero" : "rule";
      group.append(svg("line", { class: kind, x1: left, x2: width - right, y1: at, y2: at }));
      group.append(svg("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, text));
    }
    lowest = Math.max(...axis.marks.map(({ value }) => y(value)));
  });
  if (axis.low > 0 && !axis.log && places.length === 1) {
    const sign = svg("path", { class: "zigzag", d: `M${left - 5} ${height - bottom + 3}l5 -3l-5 -3l5 -3l-5 -3` });
    sign.append(svg("title", {}, "The axis does not start at zero"));
    group.append(sign);
  }
  const { from, to } = frame;
  const room = (text) => (widthOf(text) + BETWEEN) / Math.max(1, width - left - right);
  for (const mark of timeMarks(from, to, timed, room)) {
    const [at, half] = [x(mark.x), widthOf(mark.text) / 2];
    if (at - half < 0 || at + half > width) continue;
    group.append(svg("line", { class: "tick", x1: at, x2: at, y1: height - bottom, y2: height - bottom + 4 }));
    group.append(svg("text", { x: at, y: height - 4, "text-anchor": "middle" }, mark.text));
  }
  return group;
}

/** Names at the ends of lines, moved apart where lines end close together. */
export function endLabels(row, { from, to, y, last }, { width, right }) {
  const shown = row
    .filter((one) => one.name !== null && one.name !== undefined)
    .map((one) => ({ ...one, newest: one.points.findLast((point) => point.value !== null) }))
    .filter((one) => one.newest)
    .map((one) => ({ ...one, at: y(one.newest.value), size: one.sub ? 30 : 16 }))
    .sort((a, b) => a.at - b.at);
  for (let i = 1; i < shown.length; i++) shown[i].at = Math.max(shown[i].at, shown[i - 1].at + shown[i - 1].size);
  let floor = to + (last ? 16 : 2); // below the last lane there is room
  for (const one of [...shown].reverse()) {
    one.at = Math.max(Math.min(from + 4, floor - one.size), Math.min(one.at, floor - (one.sub ? 20 : 4)));
    floor = one.at - 10;
  }
  const left = width - right;
  return svg(
    "g",
    { class: "ends" },
    ...shown.map(({ name, sub, look, at }) =>
      svg(
        "g",
        { class: look.className },
        svg("line", { class: "line", x1: left + 5, x2: left + 12, y1: at, y2: at }),
        svg("text", { class: "name", x: left + 16, y: at + 4 }, shortened(safe(name), NAME, 600)),
        sub ? svg("text", { x: left + 16, y: at + 18 }, sub) : null,
      ),
    ),
  );
}

/** Pixels that end labels take. */
endLabels.room = (named) =>
  20 +
  Math.max(...named.map(({ name, sub }) => Math.max(Math.min(NAME, widthOf(safe(name), 600)), widthOf(sub ?? ""))));
