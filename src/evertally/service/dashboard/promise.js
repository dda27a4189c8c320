/** The promise: one line, which opens to what is hidden and what is not, how well, and how the budget is divided. */

import { hasToken, save } from "./api.js";
import { icon } from "./charts/icons.js";
import { element, setText } from "./dom.js";
import { fraction, label as safe, number, percent, plural, rough } from "./format.js";

const SIGNS = { epsilon: "ε", delta: "δ", rho: "ρ" };
const SAYS_LITTLE = 99; // of 100 guesses: from here on the promise is none that one could explain

/** "95 times in 100", of the chance that an interval misses. */
export function percentWords(beta) {
  const hits = (1 - beta) * 100;
  return Number.isInteger(Math.round(hits * 1e6) / 1e6) ? `${Math.round(hits)} times in 100` : percent(1 - beta);
}

/** Who is hidden: a record by its own name, or the person, item or node behind records. */
export function hiddenOne({ unit, noun }) {
  const record = safe(noun ?? "event");
  if (unit === "user") return { one: "person", it: "them", rest: "everybody else" };
  if (unit === "user-period") return { one: "person’s period", it: "it", rest: "everything else" };
  if (unit === "node") return { one: "node", it: "it", rest: "all other nodes" };
  if (unit === "item") return { one: "item", it: "it", rest: "all other items" };
  return { one: record, it: "it", rest: `all other ${plural(record)}` };
}

export class Promised {
  constructor(place, stream, state) {
    Object.assign(this, { place, stream, state });
    const { one, it } = hiddenOne(stream);
    const strong = stream.guesses !== null && stream.guesses < SAYS_LITTLE;
    const claim = strong ? `One ${one} stays hidden.` : "Here the promise says little.";
    const long = strong
      ? `Whoever reads everything here guesses right about ${it} in at most ${stream.guesses} of 100 cases.`
      : `The parameters are so large that what is published may give one ${one} away.`;
    const short = strong ? `The best guess about ${it} is right in at most ${stream.guesses} of 100 cases.` : long;
    this.life = element("i");
    this.part = element("span");
    const life = element("span", { class: "mini" }, "Life of the stream", bar(this.life), this.part);
    this.button = element(
      "button",
      {
        type: "button",
        class: strong ? "strip" : "strip weak",
        "aria-controls": "promised",
        onclick: () => this.toggle(),
      },
      icon("shield"),
      element(
        "span",
        { class: "say" },
        element("b", {}, claim),
        " ",
        element("span", { class: "quiet desk" }, long),
        element("span", { class: "quiet phone" }, short),
      ),
      stream.horizon === null ? null : life,
      element("span", { class: "open" }, element("span", {}, "What is promised"), icon("down")),
    );
    this.panel = null;
    place.replaceChildren(this.button);
    place.hidden = false;
    this.mark();
  }

  toggle() {
    this.state.set({ promise: !this.state.promise });
  }

  mark() {
    this.button.setAttribute("aria-expanded", String(this.state.promise));
    if (this.state.promise && !this.panel) {
      this.panel = panel(this.stream);
      this.place.append(this.panel.element);
      this.show(this.tick ?? this.stream.released);
    }
    if (this.panel) this.panel.element.hidden = !this.state.promise;
  }

  /** How much of the life is over. */
  show(tick) {
    this.tick = tick;
    const { horizon } = this.stream;
    if (horizon !== null) {
      this.life.style.width = `${(tick / horizon) * 100}%`;
      setText(this.part, `${tick < horizon ? Math.min(99, Math.round((tick / horizon) * 100)) : 100} %`);
    }
    const ever = "releases are out. It may go on for ever, at the same price.";
    const out = horizon === null ? ever : `of ${number(horizon)} releases are out.`;
    if (this.panel) setText(this.panel.out, `${number(tick)} ${out}`);
  }
}

const bar = (fill) => element("span", { class: "bar" }, fill);

function panel(stream) {
  const out = element("span");
  const made = element(
    "div",
    { id: "promised", class: "promise" },
    hiddenList(stream),
    element("div", {}, ...scale(stream), specialists(stream), downloads(stream)),
    element(
      "div",
      {},
      element("h3", {}, "How the privacy budget is divided"),
      ...shares(stream.queries),
      element(
        "p",
        { class: "quiet" },
        "Spent once, for the whole life. Reading, windows and downloads cost nothing. ",
        out,
      ),
    ),
  );
  return { element: made, out };
}

function hiddenList(stream) {
  const { one, rest } = hiddenOne(stream);
  const record = safe(stream.noun ?? "event");
  const person = ["user", "user-period"].includes(stream.unit);
  const what = {
    event: `Whether any one ${one} took place, and what was recorded of it.`,
    item: "Whether any one item was ever there, and what was recorded of it.",
    node: "Whether any one node is there, and everything that is joined to it.",
    user: `Whether any one person is in the data, with all their ${plural(record)}.`,
    "user-period": `What any one person did in any one period, with all ${plural(record)} of it.`,
  }[stream.unit];
  const oblivious = stream.adversary === "oblivious";
  const condition = oblivious ? ` As long as ${plural(record)} do not depend on what was published.` : "";
  const everything =
    "This holds for everything published here together, to the last day, also against somebody who knows";
  const rows = [
    ["yes", what],
    ["yes", `${everything} ${rest}.${condition}`],
    ["no", "Not hidden: facts about large groups, such as a day on which hardly anything happened."],
  ];
  if (!person) rows.push(["no", `Less protected: a person or a firm with many ${plural(record)}.`]);
  if (stream.unit === "user-period") rows.push(["no", "Less protected: what one person did over several periods."]);
  const item = ([name, text]) => element("li", { class: name }, icon(name), element("span", {}, text));
  return element(
    "div",
    {},
    element("h3", {}, "What stays hidden, and what does not"),
    element("ul", {}, ...rows.map(item)),
  );
}

/** From a coin toss to certainty, and where the best guess is. */
function scale({ guesses, unit, noun }) {
  const { one } = hiddenOne({ unit, noun });
  if (guesses === null || guesses === undefined) return [element("h3", {}, `How well one ${one} is hidden`)];
  const mark = element("span", { class: "mark" });
  const value = element("span", { class: "value" }, `${guesses} of 100`);
  for (const node of [mark, value]) node.style.left = `${Math.min(100, Math.max(0, (guesses - 50) * 2))}%`;
  return [
    element("h3", {}, `How well one ${one} is hidden`),
    element(
      "div",
      { class: "scale", role: "img", "aria-label": `${guesses} of 100, where 50 is a coin toss and 100 is certain` },
      element("span", { class: "track" }),
      mark,
      value,
      element("span", { class: "from" }, "50: a coin toss"),
      element("span", { class: "to" }, "100: certain"),
    ),
    element(
      "p",
      { class: "quiet" },
      "The best guess of somebody who is in two minds about it, after reading everything.",
    ),
  ];
}

/** The exact words. They hold the conditions and warnings too, so nothing of them is left out. */
function specialists(stream) {
  const prices = Object.entries(SIGNS)
    .filter(([name]) => typeof stream.budget[name] === "number")
    .flatMap(([name, letter], i) => [i ? ", " : "", `${letter} = `, ...written(stream.budget[name])]);
  return element(
    "details",
    { class: "specialists" },
    element("summary", {}, "For specialists"),
    element("p", { class: "price" }, ...prices, `, ${neighboursOf(stream)}, ${stream.adversary} reader.`),
    element("p", {}, element("code", { id: "guarantee" }, stream.guarantee)),
    element("p", { id: "plain", class: "quiet" }, safe(stream.plain_words)),
  );
}

function neighboursOf(stream) {
  const { one } = hiddenOne(stream);
  const known = { add_remove: `one ${one} added or removed`, replace: `one ${one} replaced` };
  return known[stream.neighbours] ?? safe(stream.neighbours);
}

/** Small numbers as a power of ten: how many zeros there are is the point of them. */
function written(value) {
  if (value >= 1e-3) return [rough(value)];
  const [digits, power] = value.toExponential(1).split("e");
  return [Number(digits) === 1 ? "" : `${Number(digits)} · `, "10", element("sup", {}, power.replace("-", "−"))];
}

function downloads(stream) {
  const note = element("span", { class: "wrong", role: "alert" });
  const link = (path, title) => {
    const download = `${stream.name}-${path}.json`;
    const fetched = (event) => {
      if (!hasToken()) return;
      event.preventDefault(); // a link cannot carry the token
      save(`v1/${path}`, download).catch((error) => setText(note, error.message));
    };
    return element("a", { href: `v1/${path}`, download, onclick: fetched }, title);
  };
  const links = [link("certificate", "Certificate"), link("ledger", "Ledger"), link("spec", "Specification")];
  return element("p", { class: "links" }, ...links, note);
}

function shares(queries) {
  const told = queries.map((query, i) => ({
    title: safe(query.title ?? query.name),
    part: fraction(query.share),
    shade: `shade-${i % 5}`,
  }));
  const strip = told.map(({ part, shade }) => {
    const piece = element("span", { class: shade }, part >= 0.08 ? percent(part) : "");
    piece.style.flexGrow = String(part);
    return piece;
  });
  const spoken = `Shares: ${told.map(({ title, part }) => `${title} ${percent(part)}`).join(", ")}`;
  const rows = told.flatMap(({ title, part, shade }) => [
    element("dt", {}, element("i", { class: shade }), element("bdi", {}, title)),
    element("dd", {}, percent(part)),
  ]);
  return [
    element("div", { class: "budget", role: "img", "aria-label": spoken }, ...strip),
    element("dl", { class: "shares" }, ...rows),
  ];
}
