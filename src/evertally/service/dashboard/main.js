/** Puts the page together: asks about the stream, follows what is released, shows what the address says. */

import { getJson, hasToken, keepToken, Refused, takeToken, Unreachable } from "./api.js";
import { Bar, Themes } from "./bar.js";
import { Board } from "./board.js";
import { Clock } from "./clock.js";
import { Data } from "./data.js";
import { Detail } from "./detail.js";
import { byId, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { Finder } from "./finder.js";
import { moment, setYear } from "./format.js";
import { Notices } from "./notices.js";
import { Promised } from "./promise.js";
import { State } from "./state.js";
import { Views } from "./views.js";

const SPEAK_EVERY = 60_000; // milliseconds: a screen reader cannot follow every release of a fast stream
const DRAW_EVERY = 1_500; // milliseconds: charts of a fast stream are asked for no more often

class Page {
  constructor(stream) {
    const clock = new Clock(stream.clock);
    const state = new State(stream);
    const feed = new Feed(stream, (what) => this.heard(what));
    const data = new Data(stream);
    Object.assign(this, { stream, clock, state, feed, data, spoken: 0, drawn: 0, detail: null });
    this.views = new Views(this);
    setYear(stream.released_time ?? stream.clock.start, stream.released ? stream.clock.tick_seconds : 0);
    if (!clock.timed) byId("times").hidden = true;
    this.bar = new Bar(stream, feed, state, clock);
    this.promised = new Promised(byId("promise"), stream, state);
    this.notices = new Notices(byId("notice"), feed);
    this.finder = new Finder(byId("find"), this);
    this.board = new Board(this, failed);
    byId("statistics").replaceChildren(this.board.element);
    byId("statistics").hidden = false;
    state.listen((changed) => this.chosen(changed));
    this.promised.show(stream.released);
    this.route();
  }

  /** The board, or one statistic. */
  route() {
    const { open } = this.state;
    if (this.detail && this.detail.name !== open) {
      this.detail.close();
      this.detail.element.remove();
      this.detail = null;
    }
    byId("promise").hidden = open !== null;
    this.board.element.hidden = open !== null;
    if (open !== null && !this.detail) {
      this.left = scrollY;
      this.detail = new Detail(this, open, failed);
      byId("statistics").append(this.detail.element);
      scrollTo(0, 0);
    } else if (open === null && this.left !== undefined) {
      scrollTo(0, this.left);
      this.left = undefined;
    }
  }

  chosen(changed) {
    if (changed.has("open")) {
      this.route();
      if (this.detail) this.detail.heading.focus({ preventScroll: true });
    }
    this.promised.mark();
    this.board.mark();
    this.detail?.mark();
    this.refresh();
  }

  refresh() {
    if (this.state.open === null) this.board.refresh();
    else this.detail.refresh();
  }

  heard(what) {
    this.bar.show();
    this.notices.show();
    if (what === "waiting") return;
    if (what === "release") this.released();
    // Charts are drawn at once, but those of a fast stream not with every release.
    const wait = Math.max(0, this.drawn + DRAW_EVERY - Date.now());
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.drawn = Date.now();
      this.refresh();
    }, wait);
  }

  released() {
    const { shown } = this.feed;
    this.promised.show(shown.tick);
    if (Date.now() - this.spoken < SPEAK_EVERY) return;
    this.spoken = Date.now();
    setTimeout(() => {
      // The cards have drawn it by then, and can tell what they show.
      setText(byId("announcer"), `New numbers, ${moment(shown.time)}. ${(this.detail ?? this.board).tell()}`);
    }, 2_000);
  }

  start() {
    return this.feed.start();
  }
}

const isLocked = (error) => error instanceof Refused && [401, 403].includes(error.status);

/** Says whether it is of no use to try again. What is no answer of the service is an error of this page. */
function failed(error) {
  if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
  if (isLocked(error)) ask(error);
  return isLocked(error);
}

function trouble(error) {
  byId("trouble").hidden = false;
  setText(byId("trouble"), `That did not work: ${error.message}`);
}

/** Asks for a token. The page is loaded anew with it, so that there is one way to start and not two. */
function ask(error) {
  const words = error.status === 401 ? "This token does not open the stream." : error.message;
  for (const id of ["promise", "notice", "statistics", "pause", "find", "state", "when"]) byId(id).hidden = true;
  byId("ask").hidden = false;
  setText(byId("refused"), hasToken() ? words : "");
  byId("token").focus();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  location.reload();
});

byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says what is shown, and is not for places in the page
  byId("statistics").focus();
});

addEventListener("hashchange", () => {
  if (!new URLSearchParams(location.hash.slice(1)).has("token")) return;
  takeToken();
  location.reload();
});

takeToken();
const themes = new Themes(byId("theme"));
try {
  const page = new Page(await getJson("v1/stream"));
  themes.follow(page.state);
  await page.start();
} catch (error) {
  if (!failed(error)) trouble(error);
}
