/** Small signs, drawn with the colour of the text beside them. */

import { svg } from "./svg.js";

const PATHS = {
  open: ["M9.5 3H13v3.5M13 3 9.2 6.8M6.5 13H3V9.5M3 13l3.8-3.8"],
  table: ["M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 3.5v9"],
  chart: ["M2.5 2.5v11h11M5 10.5l3-3.5 2 2 3.5-4.5"],
  search: ["M11.5 7A4.5 4.5 0 1 1 7 2.5 4.5 4.5 0 0 1 11.5 7ZM10.5 10.5l3 3"],
  shield: ["M8 1.8 13.5 4v4c0 3.2-2.2 5.4-5.5 6.4C4.7 13.4 2.5 11.2 2.5 8V4z", "m5.6 8 1.7 1.7 3.2-3.4"],
  down: ["m4 6.5 4 4 4-4"],
  back: ["M9.5 3.5 5 8l4.5 4.5"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  play: ["m5 3 8 5-8 5z"],
  lost: ["M2.5 6a8 8 0 0 1 11 0M5 9a4.5 4.5 0 0 1 6 0M8 12h.01M2 14 14 2"],
  stop: ["M4 4h8v8H4z"],
  clock: ["M14 8A6 6 0 1 1 8 2a6 6 0 0 1 6 6Z", "M8 4.5V8l2.5 1.5"],
  sun: [
    "M11 8A3 3 0 1 1 8 5a3 3 0 0 1 3 3Z",
    "M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  ],
  moon: ["M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z"],
  device: ["M14 8A6 6 0 1 1 8 2a6 6 0 0 1 6 6Z", "M8 2v12M11 3.2v9.6"],
  yes: ["m3 8.5 3.5 3.5L13 4.5"],
  no: ["m4 4 8 8M12 4l-8 8"],
  save: ["M8 2.5v8M4.5 7 8 10.5 11.5 7M3 13.5h10"],
  link: ["M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7"],
};

export function icon(name) {
  const lines = PATHS[name].map((d) => svg("path", { d }));
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, ...lines);
}
