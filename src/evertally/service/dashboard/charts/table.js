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

/** What a line chart draws: newest first, a column for every line; a thin line behind the others has a table of its own. */
export function seriesTable({ series, unit = null, caption = "", say = "" }) {
  const shown = [series.filter((one) => !one.soft), series.filter((one) => one.soft)].filter((some) => some.length);
  const tables = shown.map((some) => {
    const own = shown.length > 1 ? `${caption || say}, ${some.map((one) => one.name).join(", ")}` : caption || say;
    return numbersTable({ caption: own, ...columnsOf(some, unit) });
  });
  return element("div", {}, ...tables);
}

function columnsOf(series, unit) {
  const times = new Map();
  for (const { points } of series) for (const point of points) if (!times.has(point.x)) times.set(point.x, point);
  const columns = series.map((one) => new Map(one.points.map((point) => [point.x, point])));
  const rows = [...times.values()]
    .sort((a, b) => b.x - a.x)
    .map((point) => ({
      head: isMoment(point) ? moment(point.end) : period(point.start, point.end),
      cells: columns.map((column) => cell(column.get(point.x), unit)),
    }));
  const first = series[0].points[0];
  return {
    heads: [
      first && !isMoment(first) ? "Window" : "Time",
      ...series.map((one) => safe(one.name ?? one.tip ?? "Value")),
    ],
    rows,
  };
}

const isMoment = (point) => point.start === null || point.total;
const cell = (point, unit) => (point && point.value !== null ? told(point.value, point.lower, point.upper, unit) : "–");
