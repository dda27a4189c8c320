/** What is out, and what of it is shown: receives every release, holds the page still while it is paused. */

import { getJson, Refused } from "./api.js";
import { follow, pause } from "./stream.js";

const AGAIN = 3; // seconds

export class Feed {
  /** `changed(what)` hears "release" when another release is shown, "state", "waiting" (while paused), "locked". */
  constructor(stream, changed) {
    this.stream = stream;
    this.changed = changed;
    this.shown = null; // the release that the page shows
    this.newest = null; // the last one that has arrived
    this.waiting = 0;
    this.paused = false;
    this.connection = stream.ended ? "ended" : "connecting";
    this.lostSince = null;
    this.againAt = null; // when the next try to connect is made, milliseconds of this machine
  }

  /** "connecting", "before", "live", "paused", "lost" or "ended". */
  get state() {
    if (this.paused) return "paused";
    if (this.connection === "live" && !this.tick) return "before";
    return this.connection;
  }

  /** The last tick that is shown; 0 before the first. */
  get tick() {
    return this.shown?.tick ?? 0;
  }

  /** Whether it is known what there is to show. */
  get ready() {
    return this.shown !== null || this.stream.released === 0;
  }

  async start() {
    this.control = new AbortController();
    if (this.stream.released) this.add(await this.latest());
    await follow({
      after: this.newest?.tick ?? 0,
      signal: this.control.signal,
      onRelease: (release) => this.add(release),
      onState: (state, wait) => this.turn(state, wait),
    });
  }

  /** The last release, asked for until it is there. */
  async latest() {
    for (;;) {
      try {
        return await getJson("v1/releases/latest");
      } catch (error) {
        if (error instanceof Refused) throw error;
        this.turn("lost", AGAIN);
        await pause(AGAIN, this.control.signal);
      }
    }
  }

  add(release) {
    if (this.newest && release.tick <= this.newest.tick) return;
    this.newest = release;
    if (this.paused) {
      this.waiting += 1;
      return this.changed("waiting");
    }
    this.shown = release;
    this.changed("release");
  }

  turn(state, wait = 0) {
    if (state === "lost") {
      this.lostSince ??= Date.now();
      this.againAt = Date.now() + wait * 1000;
    } else {
      this.lostSince = null;
    }
    this.connection = state;
    this.changed("state");
    if (state !== "live") return;
    getJson("v1/stream").then(
      (stream) => {
        Object.assign(this.stream, { released: stream.released, next_release: stream.next_release });
        this.changed("state");
      },
      () => {},
    );
  }

  hurry() {
    this.control?.signal.dispatchEvent(new Event("hurry"));
  }

  pause() {
    this.paused = true;
    this.changed("state");
  }

  /** Shows what came meanwhile: the last release at once, and charts ask for all that lies between. */
  resume() {
    this.paused = false;
    this.waiting = 0;
    const newer = this.newest && this.newest !== this.shown;
    this.shown = this.newest;
    this.changed("state");
    if (newer) this.changed("release");
  }
}
