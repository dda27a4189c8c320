/** How exact windows of each length are: known before any data, because the noise does not depend on them. */

import { svg } from "./charts/svg.js";
import { element } from "./dom.js";
import { number } from "./format.js";
import { percentWords } from "./promise.js";

const FAR = 1.15; // times: an error at worst that is larger than this is told beside the usual one
const HARDLY = 4; // times: an error that grows less than this, while windows grow a hundredfold, hardly grows

export class Exactness {
  constructor({ data, stream }, query, failed) {
    Object.assign(this, { data, stream, query, failed });
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

  draw({ windows, level, because }) {
    if (!windows.length) return this.tell(level, because);
    const rates = windows.every((one) => one.per);
    const sizes = windows.map((one) => (rates ? one.per.usual : one.usual));
    const most = Math.max(...sizes);
    const radius = (size) => `±\u00a0${number(size, size)}`;
    const rows = windows.map((one, i) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, upper(one.words)),
        element("td", { class: "bar" }, bar(sizes[i] / most)),
        element("td", {}, radius(one.usual)),
        rates ? element("td", { class: "quiet" }, radius(one.per.usual)) : null,
      ),
    );
    const heads = ["Window", "", "Error", ...(rates ? [`As a ${windows[0].per.words.toLowerCase()} rate`] : [])];
    const flat = rates && windows.at(-1).usual < HARDLY * windows[0].usual && windows.length > 1;
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
      ...worst(windows, radius),
      ...(flat ? [element("p", { class: "foot" }, hardly(windows[0].per.words.toLowerCase()))] : []),
    );
  }

  /** Without windows: the error of every release, or why it is not known before there are data. */
  tell(level, because) {
    if (!level && !because) return;
    const { unit } = this.query;
    const radius = level && `±\u00a0${number(Math.ceil(level.radius))}${unit ? `\u00a0${unit}` : ""}`;
    const holds = level && percentWords(this.stream.beta);
    const known = level && `Each number is published ${radius}, which holds ${holds}. That is known before any data.`;
    this.element.hidden = false;
    this.body.replaceChildren(element("h3", {}, "How exact it is"), element("p", {}, known ?? because));
  }
}

/** Some noise is largest where a stream begins. */
function worst(windows, radius) {
  const one = windows.find(({ radius: most, usual }) => most > FAR * usual);
  if (!one) return [];
  return [element("p", { class: "foot" }, `Usual errors; at worst, ${one.words} has ${radius(one.radius)}.`)];
}

const hardly = (unit) => `The error hardly grows with the window, so a longer one says more about a ${unit}.`;
const headOf = (head) => (head ? element("th", { scope: "col" }, head) : element("td"));
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function bar(part) {
  const fill = svg("rect", { x: 0, y: 1, height: 8, rx: 2, width: `${Math.max(1, part * 100)}%` });
  return svg("svg", { class: "error-bar", height: 10, "aria-hidden": "true" }, fill);
}
