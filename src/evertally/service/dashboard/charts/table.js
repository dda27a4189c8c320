/** The same numbers as a table. */

import { element } from "../dom.js";
import { label as safe, moment, number, period, told } from "../format.js";

const FIRST = 7; // rows that are there before the reader asks for all

/** heads: column titles; rows: [{head, cells}] of texts. Shows a few rows and a button for all of them. */
export function numbersTable({ caption, heads, rows }) {
  const row = ({ head, cells }) =>
    element("tr", {}, element("th", { scope: "row" }, head), ...cells.map((cell) => element("td", {}, cell)));
  const body = element("tbody", {}, ...rows.slice(0, FIRST).map(row));
  const table = element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    body,
  );
  const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": caption };
  const made = element("div", { class: "numbers" }, element("div", box, table));
  if (rows.length <= FIRST) return made;
  const all = () => {
    body.append(...rows.slice(FIRST).map(row));
    note.remove();
  };
  const button = element("button", { type: "button", class: "link", onclick: all }, "Show all");
  const note = element("p", { class: "foot" }, `${FIRST} of ${number(rows.length)} rows. `, button);
  made.append(note);
  return made;
}

/** A table of what a line chart draws: newest first, a column for every line. */
export function seriesTable({ series, unit = null, caption = "", say = "" }) {
  const times = new Map();
  for (const { points } of series) for (const point of points) if (!times.has(point.x)) times.set(point.x, point);
  const cell = (points) => new Map(points.map((point) => [point.x, point]));
  const columns = series.map((one) => cell(one.points));
  const rows = [...times.values()]
    .sort((a, b) => b.x - a.x)
    .map((point) => ({
      head: point.start === null || point.total ? moment(point.end) : period(point.start, point.end),
      cells: columns.map((column) => {
        const found = column.get(point.x);
        return found && found.value !== null ? told(found.value, found.lower, found.upper, unit) : "–";
      }),
    }));
  const heads = [rows.length && series[0].points[0]?.start ? "Window" : "Time", ...series.map((one) => safe(one.name ?? one.tip ?? "Value"))];
  return numbersTable({ caption: caption || say, heads, rows });
}
