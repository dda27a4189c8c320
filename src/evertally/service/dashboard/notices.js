/** What readers must know about the state of the page, over the numbers: not started, paused, no connection. */

import { icon } from "./charts/icons.js";
import { element, setText } from "./dom.js";
import { moment, number, plural, timeOfDay } from "./format.js";

const BEFORE =
  "Nothing is published yet. How exact the numbers will be is known already, " +
  "because the error does not depend on the data.";

export class Notices {
  constructor(place, feed) {
    Object.assign(this, { place, feed, told: null });
    setInterval(() => this.count(), 500);
  }

  show() {
    const { state } = this.feed;
    if (this.told !== state) {
      this.told = state;
      const made = { before: this.before, paused: this.paused, lost: this.lost }[state]?.call(this);
      this.place.replaceChildren(...(made ? [made] : []));
      this.place.hidden = !made;
    }
    this.count();
  }

  before() {
    return element("div", { class: "note plain" }, icon("clock"), element("span", {}, BEFORE));
  }

  paused() {
    this.waiting = element("b");
    return element(
      "div",
      { class: "note paused" },
      icon("pause"),
      element("span", {}, "You paused this page. ", this.waiting),
      element("button", { type: "button", class: "btn", onclick: () => this.feed.resume() }, icon("play"), "Resume"),
    );
  }

  /** The alert is read at once, and only once: the seconds that run are beside it, not in it. */
  lost() {
    const { shown, lostSince } = this.feed;
    const since = `${lostWords(lostSince)}. `;
    const kept = shown ? ["What you see is from ", element("b", {}, moment(shown.time)), " and stays true. "] : [];
    this.again = element("span");
    return element(
      "div",
      { class: "note lost" },
      icon("lost"),
      element("span", {}, element("span", { role: "alert" }, since, ...kept), this.again),
      element("button", { type: "button", class: "btn", onclick: () => this.feed.hurry() }, "Try now"),
    );
  }

  count() {
    if (this.told === "lost") {
      const left = Math.ceil((this.feed.againAt - Date.now()) / 1000);
      setText(this.again, left > 0 ? `Trying again in ${left} s.` : "Trying again now.");
    }
    if (this.told !== "paused") return;
    const { waiting, lostSince } = this.feed;
    const are = `${plural("release", waiting)} ${waiting === 1 ? "is" : "are"}`;
    const newer = `${number(waiting)} newer ${are} waiting; nothing is lost.`;
    const lost = lostSince ? ` ${lostWords(lostSince)}, trying again.` : "";
    setText(this.waiting, `${waiting ? newer : "Nothing newer has come since."}${lost}`);
  }
}

const lostWords = (since) => `No connection since ${timeOfDay(Math.floor(since / 60_000) * 60)} UTC`;
