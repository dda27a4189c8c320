/** Puts the page together: asks about the stream, loads its history, follows what is released. */

import { getJson, hasToken, keepToken, Refused, takeToken } from "./api.js";
import { Board } from "./board.js";
import { byId, setText } from "./dom.js";
import { percent } from "./format.js";
import { Gauge } from "./gauge.js";
import { Header } from "./header.js";
import { saving } from "./links.js";
import { choices, Ranges } from "./ranges.js";
import { follow } from "./stream.js";

const AGAIN = 3_000; // milliseconds until a history that did not come is asked for again
const SPEAK_EVERY = 20_000; // milliseconds: a screen reader cannot follow every release of a fast stream

class Page {
  constructor(stream) {
    this.stream = stream;
    this.header = new Header(stream);
    this.gauge = new Gauge(byId("gauge"), stream);
    this.ranges = new Ranges(byId("ranges"), choices(stream.clock.tick_seconds, stream.horizon), (window) =>
      this.show(window),
    );
    this.board = new Board(stream, {
      zoom: (first, last) => this.ranges.zoom(first, last),
      reset: () => this.ranges.reset(),
    });
    this.spoken = 0;
    this.promise();
    byId("pause").addEventListener("click", () => (this.following ? this.pause() : this.follow()));
    for (const id of ["promise", "statistics", "pause"]) byId(id).hidden = false;
  }

  promise() {
    setText(byId("plain"), this.stream.plain_words);
    setText(byId("guarantee"), this.stream.guarantee);
    const chance = percent(1 - this.stream.beta);
    setText(byId("bands"), `Bands and whiskers are ${chance} intervals. Times are UTC.`);
    for (const id of ["certificate", "ledger", "spec"]) saving(byId(id), `${this.stream.name}-${id}.json`, trouble);
  }

  start() {
    return Promise.all([this.show({ ticks: null }), this.follow()]);
  }

  /** The last release first, so that numbers stand there at once; then the history. Tries until it is there. */
  async show(window) {
    this.wanted = window;
    try {
      if (this.stream.released && !this.board.latest) this.add(await getJson("v1/releases/latest"));
      await this.board.show(window);
    } catch (error) {
      if (isLocked(error)) ask(error);
      else setTimeout(() => this.wanted === window && this.show(window), AGAIN);
    }
  }

  add(release) {
    if (!this.board.add(release)) return;
    this.header.show(release.tick, release.time);
    this.gauge.show(release.tick);
    if (Date.now() - this.spoken < SPEAK_EVERY) return;
    this.spoken = Date.now();
    setText(byId("announcer"), this.board.tell());
  }

  async follow() {
    this.following = new AbortController();
    this.setPaused(false);
    const state = (name) => this.turned(name);
    const after = this.board.lastTick();
    try {
      await follow({ after, signal: this.following.signal, onRelease: (release) => this.add(release), onState: state });
    } catch (error) {
      ask(error);
    }
  }

  pause() {
    this.following.abort();
    this.following = null;
    this.setPaused(true);
    this.header.setState("paused");
  }

  setPaused(paused) {
    byId("pause").setAttribute("aria-pressed", String(paused));
    setText(byId("pause"), paused ? "Resume" : "Pause");
  }

  turned(state) {
    if (!this.following) return;
    this.header.setState(state);
    if (state === "ended") byId("pause").hidden = true;
    if (state !== "live") return;
    getJson("v1/stream").then(
      (stream) => this.header.renew(stream),
      () => {},
    );
  }
}

const isLocked = (error) => error instanceof Refused && [401, 403].includes(error.status);

function trouble(error) {
  byId("trouble").hidden = false;
  setText(byId("trouble"), `That did not work: ${error.message}`);
}

/** Asks for a token. The page is loaded anew with it, so that there is one way to start and not two. */
function ask(error) {
  const words = error.status === 401 ? "This token does not open the stream." : error.message;
  for (const id of ["promise", "statistics", "clock", "pause"]) byId(id).hidden = true;
  byId("ask").hidden = false;
  setText(byId("refused"), hasToken() ? words : "");
  byId("token").focus();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  location.reload();
});

addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return;
  takeToken();
  location.reload();
});

takeToken();
try {
  await new Page(await getJson("v1/stream")).start();
} catch (error) {
  if (isLocked(error)) ask(error);
  else trouble(error);
}
