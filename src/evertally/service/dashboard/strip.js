/** Who led when, and how long: the first label of every release in the range. */

import { entries } from "./curves.js";
import { element } from "./dom.js";
import { label as safe, moment, number } from "./format.js";

const LONGEST = 5; // labels that are listed under the strip

export class Strip {
  constructor() {
    this.track = element("div", { class: "strip", role: "img" });
    this.from = element("span");
    this.to = element("span");
    this.led = element("ul", { class: "led", "aria-label": "Part of the time in the lead" });
    this.element = element(
      "figure",
      { class: "lines" },
      element("figcaption", { class: "quiet note" }, "In the lead over time"),
      this.track,
      element("p", { class: "ends quiet" }, this.from, this.to),
      this.led,
    );
  }

  draw(points, query, picks) {
    const runs = runsOf(points, query);
    this.track.replaceChildren(...runs.map((run) => segment(run, picks.slot(run.label))));
    this.track.setAttribute("aria-label", `${number(Math.max(0, runs.length - 1))} changes of the lead`);
    this.from.textContent = points.length ? moment(points[0].time) : "";
    this.to.textContent = points.length > 1 ? moment(points.at(-1).time) : "";
    const longest = leadersOf(points, query).slice(0, LONGEST);
    this.led.replaceChildren(...longest.map(({ label, part }) => leadRow(label, part, picks.slot(label))));
  }
}

/** All labels that led in the range with their part of the releases in it, those that led longest first. */
export function leadersOf(points, query) {
  const counts = new Map();
  for (const { label, releases } of runsOf(points, query)) counts.set(label, (counts.get(label) ?? 0) + releases);
  const leaders = [...counts].map(([label, count]) => ({ label, part: count / points.length }));
  return leaders.sort((a, b) => b.part - a.part);
}

/** Neighbouring releases with the same leader, joined. */
function runsOf(points, query) {
  const runs = [];
  for (const point of points) {
    const leader = entries(point.queries[query])[0]?.value;
    if (leader === undefined) continue;
    const last = runs.at(-1);
    if (last?.label === String(leader)) Object.assign(last, { to: point, releases: last.releases + 1 });
    else runs.push({ label: String(leader), from: point, to: point, releases: 1 });
  }
  return runs;
}

function segment({ label, from, to, releases }, slot) {
  const title = `${safe(label)}, ticks ${number(from.tick)} to ${number(to.tick)}`;
  const made = element("span", { class: slotClass(slot), title }, element("bdi", {}, safe(label)));
  made.style.flexGrow = String(releases);
  return made;
}

function leadRow(label, part, slot) {
  const fill = element("i", { class: "fill" });
  fill.style.width = `${part * 100}%`;
  return element(
    "li",
    { class: slotClass(slot) },
    element("bdi", { class: "name", title: safe(label) }, safe(label)),
    element("span", { class: "track" }, fill),
    element("span", { class: "told quiet" }, `${Math.round(part * 100)} %`),
  );
}

const slotClass = (slot) => (slot === null ? "" : `slot-${slot}`);
