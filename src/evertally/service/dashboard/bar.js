/** The bar at the top: which stream, how it stands, what came last, when the next numbers come. */

import { serviceTime } from "./api.js";
import { icon } from "./charts/icons.js";
import { byId, element, setText } from "./dom.js";
import { duration, label as safe, moment } from "./format.js";
import { Switch, words } from "./switches.js";

const STATES = {
  connecting: { sign: null, text: "Connecting" },
  before: { sign: "clock", text: "Not started" },
  live: { sign: null, text: "Live" },
  paused: { sign: "pause", text: "Paused" },
  lost: { sign: "lost", text: "No connection" },
  ended: { sign: "stop", text: "Ended" },
};
const FAST = 5; // seconds: a countdown to ticks that are shorter would only flicker

export class Bar {
  constructor(stream, feed, state, clock) {
    Object.assign(this, { stream, feed, clock });
    const title = safe(stream.title ?? stream.name);
    setText(byId("name"), title);
    document.title = `${title} · evertally`;
    byId("home").addEventListener("click", (event) => {
      event.preventDefault();
      state.set({ open: null, search: "" });
    });
    byId("pause").addEventListener("click", () => (feed.paused ? feed.resume() : feed.pause()));
    this.long = element("span", { class: "desk" });
    this.short = element("span", { class: "phone" });
    byId("when").replaceChildren(this.long, this.short);
    setInterval(() => this.count(), 500);
    this.show();
  }

  show() {
    const { state } = this.feed;
    const pill = byId("state");
    if (pill.dataset.state !== state || !pill.dataset.drawn) {
      const { sign, text } = STATES[state];
      pill.dataset.state = state;
      pill.dataset.drawn = "1";
      pill.replaceChildren(sign ? icon(sign) : element("i", { class: "dot" }), text);
    }
    const button = byId("pause");
    button.hidden = !["live", "paused"].includes(state);
    const paused = state === "paused";
    if (button.getAttribute("aria-pressed") !== String(paused)) {
      button.setAttribute("aria-pressed", String(paused));
      button.replaceChildren(icon(paused ? "play" : "pause"), ...words(paused ? "Resume" : "Pause", ""));
      button.setAttribute("aria-label", paused ? "Resume" : "Pause");
    }
    this.count();
  }

  count() {
    const [long, short] = this.told();
    setText(this.long, long);
    setText(this.short, short);
  }

  told() {
    const { state, shown } = this.feed;
    const last = shown ? moment(shown.time) : "";
    const due = this.due();
    if (state === "before") {
      if (this.stream.clock.close === "request") return ["first numbers on request", ""];
      return [`first numbers on ${moment(this.clock.written(1))}${due && `, ${due}`}`, due];
    }
    if (state === "live") {
      const next = due && `next ${due}`;
      return [next ? `updated ${last} · ${next}` : `updated ${last}`, next];
    }
    if (state === "ended") return [`${last} · these numbers are final`, last];
    return [last && `showing ${last}`, last];
  }

  /** Releases come on a clock, so the one after any tick is known from the one after the tick that the service told. */
  due() {
    const { next_release: next, released, clock } = this.stream;
    if (!next || clock.close === "request") return "";
    if (clock.tick_seconds < FAST) return `every ${duration(clock.tick_seconds)}`;
    const ahead = ((this.feed.newest?.tick ?? 0) - released) * clock.tick_seconds;
    const left = Date.parse(next) / 1000 + ahead - serviceTime() / 1000;
    return left > 0.5 ? `in ${duration(Math.ceil(left))}` : "now";
  }
}

/** Light, dark, or as the device. Works before anything is known about the stream. */
export class Themes {
  constructor(place) {
    this.state = null;
    const names = { light: ["sun", "Light"], dark: ["moon", "Dark"], auto: ["device", "As the device"] };
    const options = Object.entries(names).map(([key, [sign, name]]) => ({ key, content: [icon(sign)], name }));
    this.switch = new Switch("Theme", options, (key) => this.choose(key), "icons");
    this.mark();
    document.addEventListener("themechange", () => this.mark());
    place.replaceChildren(this.switch.element);
  }

  choose(key) {
    document.dispatchEvent(new CustomEvent("themewanted", { detail: key }));
    this.state?.set({ theme: key });
  }

  /** From now on the theme is in the address too. */
  follow(state) {
    this.state = state;
    state.listen((changed) => {
      const wanted = changed.has("theme") && state.theme && state.theme !== document.documentElement.dataset.choice;
      if (wanted) document.dispatchEvent(new CustomEvent("themewanted", { detail: state.theme }));
    });
  }

  mark() {
    this.switch.mark(document.documentElement.dataset.choice);
  }
}
