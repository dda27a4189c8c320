/** One statistic on a page of its own: its chart, what it is compared with, its table, errors, making, files. */

import { groups, makeCard } from "./cards/cards.js";
import { icon } from "./charts/icons.js";
import { Controls } from "./controls.js";
import { Course } from "./course.js";
import { element } from "./dom.js";
import { Downloads } from "./downloads.js";
import { Exactness } from "./exactness.js";
import { label as safe } from "./format.js";
import { howItIsMade } from "./made.js";
import { publishedWords, titleOf } from "./measure.js";
import { Painter } from "./painter.js";
import { Switch } from "./switches.js";

const COURSES = ["figure", "bars", "ranking"];

/** Whether a statistic is one course over time for each label, which can be compared. */
const isCourse = (group) =>
  group.length === 1 &&
  group[0].differences &&
  COURSES.includes(group[0].card.view) &&
  group[0].card.values === "numbers" &&
  group[0].card.names === null && // percentiles and moments are no labels to be compared
  !group[0].card.places;

export class Detail {
  constructor(page, name, failed) {
    const { stream, state } = page;
    Object.assign(this, { page, state, name });
    this.group = groups(stream.queries).find((group) => group.some((query) => query.name === name));
    const query = this.group.find((one) => one.name === name);
    this.heading = element("h2", { tabindex: "-1" }, element("bdi", {}, this.group.map(titleOf).join(", ")));
    const about = query.description ? safe(query.description) : publishedWords(query, stream);
    this.lead = element("p", { class: "quiet lead" }, about);
    const course = isCourse(this.group);
    this.as = new Switch(
      "Shown as",
      [
        { key: false, content: ["Chart"] },
        { key: true, content: ["Table"] },
      ],
      (table) => state.set({ table }),
    );
    const windowed = this.group.some((one) => one.differences);
    this.controls = new Controls(stream, state, { more: course ? this.as.element : element("span"), windowed });
    this.main = course ? new Course(page, query, failed, this) : new Large(page, this.group, failed);
    this.exactness = new Exactness(page, query, failed);
    this.downloads = new Downloads(page, this.group, this.main);
    const made = element("section", { class: "card made" }, ...howItIsMade(this.group, stream));
    this.element = element(
      "div",
      { class: "detail" },
      element("p", { class: "crumb" }, this.back()),
      element("div", { class: "head" }, this.heading, this.lead),
      this.controls.element,
      this.main.element,
      element(
        "div",
        { class: "facts" },
        this.exactness.element,
        made,
        this.downloads.element,
      ),
    );
    this.mark();
    this.refresh();
  }

  back() {
    const back = (event) => {
      event.preventDefault();
      this.state.set({ open: null, picks: [], search: "", part: null, table: false });
    };
    return element("a", { href: "#", onclick: back }, icon("back"), "All statistics");
  }

  mark() {
    this.controls.mark();
    this.as.mark(this.state.table);
    this.main.mark?.();
  }

  refresh() {
    this.main.refresh();
    this.exactness.refresh();
  }

  close() {
    this.main.close();
  }

  /** The last values in words. */
  tell() {
    return this.main.tell();
  }
}

/** Statistics that are no course over time: the card itself, in large. */
class Large {
  constructor({ stream, views, state }, group, failed) {
    this.painter = new Painter(views, failed);
    const ask = (...wanted) => asks(...wanted);
    const open = (name) => state.set({ open: name });
    this.card = makeCard(group, stream, { open, ask, large: true });
    const asks = this.painter.add(this.card);
    this.element = element("div", { class: "grid large" }, this.card.element);
  }

  refresh() {
    this.painter.refresh();
  }

  /** What a picture is taken of. */
  get picture() {
    return this.card.element;
  }

  tell() {
    return this.card.tell();
  }

  viewPath = null; // there are no windows that could be saved

  close() {
    this.painter.clear();
  }
}
