/** What all cards have: a title, what its numbers are, the drawing or the same numbers as a table, and a line below. */

import { element, setText } from "../dom.js";
import { label as safe } from "../format.js";
import { icon } from "../charts/icons.js";
import { emptyWords, titleOf } from "./words.js";

let made = 0;

export class Frame {
  /** `table`: makes the table of what is drawn; null where the drawing is one already. */
  constructor(queries, stream, { open = null, large = false, table = null }) {
    const [query] = queries;
    Object.assign(this, { queries, stream, table });
    this.title = queries.map(titleOf).join(", ");
    const id = `card-${++made}`;
    this.sub = element("p", { class: "sub" });
    this.content = element("div", { class: "content" });
    this.numbers = element("div", { class: "as-table", hidden: true });
    this.empty = element("div", { class: "empty" }, element("p", {}, element("b")), element("p", { class: "quiet" }));
    this.foot = element("p", { class: "foot", hidden: true });
    const name = safe(this.title);
    this.turn = element(
      "button",
      {
        type: "button",
        class: "go turn",
        "aria-pressed": "false",
        "aria-label": `${name} as a table`,
        title: "As a table",
        onclick: () => this.toggle(),
      },
      icon("table"),
    );
    this.go = element(
      "button",
      { type: "button", class: "go", "aria-label": `Open ${name}`, title: "Open", onclick: () => open?.(query.name) },
      icon("open"),
    );
    this.turn.hidden = table === null;
    this.go.hidden = large || open === null;
    this.element = element(
      "section",
      { class: "card", "aria-labelledby": id, "data-view": query.card.view, "data-query": query.name },
      element(
        "header",
        {},
        element("div", {}, element("h2", { id }, element("bdi", {}, name)), this.sub),
        this.turn,
        this.go,
      ),
      this.empty,
      this.content,
      this.numbers,
      this.foot,
    );
    this.show(false);
  }

  toggle() {
    const asTable = this.numbers.hidden;
    this.turn.setAttribute("aria-pressed", String(asTable));
    this.turn.replaceChildren(icon(asTable ? "chart" : "table"));
    this.show(true, asTable);
    this.renew();
  }

  /** Writes the table again, if that is what the reader looks at. */
  renew() {
    if (!this.numbers.hidden) this.numbers.replaceChildren(this.table());
  }

  /** Whether there is something to draw; if not, the card says when there will be. */
  show(something, asTable = something && this.turn.getAttribute("aria-pressed") === "true") {
    this.empty.hidden = something;
    this.content.hidden = !something || asTable;
    this.numbers.hidden = !something || !asTable;
    this.turn.disabled = !something;
  }

  /** The hatched field with words for what is missing. */
  nothing(view, words = emptyWords(this.queries[0], this.stream, view)) {
    this.show(false);
    const [first, second] = this.empty.children;
    setText(first.firstChild, words[0]);
    setText(second, words[1]);
    this.setFoot("");
  }

  setSub(words) {
    setText(this.sub, words);
  }

  setFoot(words) {
    setText(this.foot, words);
    this.foot.hidden = words === "";
  }
}
