/** How exact windows of each length are: known before any data, because the noise does not depend on them. */

import { svg } from "./charts/svg.js";
import { element } from "./dom.js";
import { number } from "./format.js";

const HARDLY = 4; // times: an error that grows less than this, while windows grow a hundredfold, hardly grows

export class Exactness {
  constructor({ data }, query, failed) {
    Object.assign(this, { data, query, failed });
    this.body = element("div");
    this.element = element("section", { class: "card exactness", hidden: true }, this.body);
  }

  refresh() {
    this.asked ??= this.data.exactness(this.query).then(
      (answer) => this.draw(answer),
      (error) => {
        this.asked = undefined;
        this.failed(error);
      },
    );
  }

  draw({ windows }) {
    if (!windows.length) return;
    const rates = windows.every((one) => one.per);
    const sizes = windows.map((one) => (rates ? one.per.radius : one.radius));
    const most = Math.max(...sizes);
    const radius = (size) => `±\u00a0${number(size, size)}`;
    const rows = windows.map((one, i) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, upper(one.words)),
        element("td", { class: "bar" }, bar(sizes[i] / most)),
        element("td", {}, radius(one.radius)),
        rates ? element("td", { class: "quiet" }, radius(one.per.radius)) : null,
      ),
    );
    const heads = ["Window", "", "Error", ...(rates ? [`As a ${windows[0].per.words.toLowerCase()} rate`] : [])];
    const flat = rates && windows.at(-1).radius < HARDLY * windows[0].radius && windows.length > 1;
    this.element.hidden = false;
    this.body.replaceChildren(
      element("h3", {}, rates ? "Longer windows are more exact" : "How exact windows are"),
      element(
        "table",
        {},
        element("caption", { class: "unseen" }, "Error by length of the window"),
        element("thead", {}, element("tr", {}, ...heads.map(headOf))),
        element("tbody", {}, ...rows),
      ),
      ...(flat ? [element("p", { class: "foot" }, hardly(windows[0].per.words.toLowerCase()))] : []),
    );
  }
}

const hardly = (unit) => `The error hardly grows with the window, so a longer one says more about a ${unit}.`;
const headOf = (head) => (head ? element("th", { scope: "col" }, head) : element("td"));
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function bar(part) {
  const fill = svg("rect", { x: 0, y: 1, height: 8, rx: 2, width: `${Math.max(1, part * 100)}%` });
  return svg("svg", { class: "error-bar", height: 10, "aria-hidden": "true" }, fill);
}
