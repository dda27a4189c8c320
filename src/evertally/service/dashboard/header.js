/** The head of the page: which stream, whether it is live, what came last and when the next release is due. */

import { serviceTime } from "./api.js";
import { byId, setText } from "./dom.js";
import { duration, moment, number } from "./format.js";

const STATES = {
  connecting: "Connecting",
  live: "Live",
  paused: "Paused",
  lost: "Reconnecting",
  ended: "Ended",
};

export class Header {
  constructor(stream) {
    this.stream = stream;
    this.state = "connecting";
    byId("clock").hidden = false;
    setText(byId("name"), stream.name);
    document.title = `${stream.name} · evertally`;
    this.show(stream.released, stream.released_time);
    setInterval(() => this.count(), 500);
  }

  /** A fresh answer of the service about the stream: when the next release is due. */
  renew(stream) {
    this.stream = stream;
    this.count();
  }

  setState(state) {
    this.state = state;
    byId("state").dataset.state = state;
    setText(byId("state"), STATES[state]);
    this.count();
  }

  show(tick, time) {
    this.tick = tick;
    setText(byId("tick"), tick ? `Tick ${number(tick)}` : "Nothing yet");
    setText(byId("time"), tick ? moment(time) : "");
    this.count();
  }

  /** Releases come on a clock, so the one after any tick is known from the one after the tick that the service told. */
  count() {
    if (this.state === "ended") return setText(byId("next"), "None: the stream has ended");
    const { next_release: next, released, clock } = this.stream;
    setText(byId("next"), clock.close === "request" ? "On request" : this.due(next, released, clock.tick_seconds));
  }

  due(next, released, length) {
    if (this.state === "lost") return "Unknown";
    if (!next) return "None";
    if (length < 5) return `Every ${duration(length)}`;
    const left = Date.parse(next) / 1000 + (this.tick - released) * length - serviceTime() / 1000;
    return left > 0.5 ? `In ${duration(Math.ceil(left))}` : "Now";
  }
}
