/** Names alone, without numbers: who is largest now, and who led when. */

import { entries } from "../charts/points.js";
import { look, remember } from "../charts/look.js";
import { numbersTable } from "../charts/table.js";
import { element, setText } from "../dom.js";
import { isBounded, label as safe, moment, number } from "../format.js";
import { Frame } from "./frame.js";

const LONGEST = 5; // labels that are listed with their part of the time

export class LeadsCard {
  constructor(queries, stream, options) {
    [this.query] = queries;
    this.needs = { history: true };
    this.frame = new Frame(queries, stream, { ...options, table: () => this.table() });
    Object.assign(this, { element: this.frame.element, title: this.frame.title, span: 4 });
    this.now = element("ol", { class: "leading" });
    this.strip = element("div", { class: "strip-of-leads", role: "img" });
    this.from = element("span");
    this.to = element("span");
    this.led = element("ul", { class: "led", "aria-label": "Part of the time in the lead" });
    const caption = element("p", { class: "sub" }, "In the lead over time");
    const ends = element("p", { class: "ends" }, this.from, this.to);
    this.frame.content.append(this.now, caption, this.strip, ends, this.led);
  }

  draw(view) {
    this.frame.setSub(safe(this.query.description ?? this.query.card.words));
    const now = entries(view.latest?.queries[this.query.name]);
    this.latest = now.map((entry) => String(entry.value));
    if (!now.length) return this.frame.nothing(view);
    this.frame.show(true);
    this.runs = runsOf(view.history?.[this.query.name] ?? [view.latest], this.query.name);
    remember(this.query, [...this.runs.map((run) => run.label), ...this.latest]);
    this.now.replaceChildren(...this.latest.map((label) => this.named("li", label)));
    this.strip.replaceChildren(...this.runs.map((run) => this.segment(run)));
    this.strip.setAttribute("aria-label", `${number(Math.max(0, this.runs.length - 1))} changes of the lead`);
    setText(this.from, this.runs.length ? moment(this.runs[0].from) : "");
    setText(this.to, this.runs.length ? moment(this.runs.at(-1).to) : "");
    this.led.replaceChildren(
      ...leadersOf(this.runs)
        .slice(0, LONGEST)
        .map((one) => this.part(one)),
    );
    this.frame.setFoot(boundWords(now));
    this.frame.renew();
  }

  named(tag, label) {
    const name = element("bdi", { class: "name", title: safe(label) }, safe(label));
    return element(
      tag,
      { class: look(this.query, label).className, "data-label": label },
      element("i", { class: "swatch" }),
      name,
    );
  }

  segment({ label, from, to, releases }) {
    const made = this.named("span", label);
    made.title = `${safe(label)}, ${moment(from)} to ${moment(to)}`;
    made.style.flexGrow = String(releases);
    return made;
  }

  part({ label, part }) {
    const made = this.named("li", label);
    const fill = element("i", { class: "fill" });
    fill.style.width = `${part * 100}%`;
    made.append(
      element("span", { class: "track" }, fill),
      element("span", { class: "told" }, `${Math.round(part * 100)} %`),
    );
    return made;
  }

  table() {
    const rows = [...this.runs]
      .reverse()
      .map(({ label, from, to }) => ({ head: `${moment(from)} to ${moment(to)}`, cells: [safe(label)] }));
    return numbersTable({ caption: `${this.title}: in the lead`, heads: ["Time", "In the lead"], rows });
  }

  tell() {
    return (this.latest ?? [])
      .slice(0, 3)
      .map((label, i) => `${i + 1}: ${safe(label)}`)
      .join("; ");
  }
}

function boundWords(now) {
  if (!now.every((entry) => isBounded(entry.lower, entry.upper))) return "";
  const bound = Math.ceil(Math.max(...now.map((entry) => entry.upper - entry.lower)));
  return `A label's count is at most ${number(bound)} away from the count that belongs in its place.`;
}

/** Neighbouring releases with the same leader, joined. */
function runsOf(releases, name) {
  const runs = [];
  for (const { time, queries } of releases) {
    const leader = entries(queries[name])[0]?.value;
    if (leader === undefined) continue;
    const last = runs.at(-1);
    if (last?.label === String(leader)) Object.assign(last, { to: time, releases: last.releases + 1 });
    else runs.push({ label: String(leader), from: time, to: time, releases: 1 });
  }
  return runs;
}

/** All labels that led, with their part of the releases, those that led longest first. */
function leadersOf(runs) {
  const counts = new Map();
  for (const { label, releases } of runs) counts.set(label, (counts.get(label) ?? 0) + releases);
  const all = runs.reduce((sum, run) => sum + run.releases, 0);
  return [...counts].map(([label, count]) => ({ label, part: count / all })).sort((a, b) => b.part - a.part);
}
