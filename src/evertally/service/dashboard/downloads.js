/** What can be taken away: this view, all releases, a picture of the chart, a link. */

import { hasToken, pathOf, save, saveBlob } from "./api.js";
import { icon } from "./charts/icons.js";
import { element, setText } from "./dom.js";
import { pictureOf, pngOf } from "./picture.js";

const LIMIT = 10_000; // ticks: what the service gives at once
const FORMATS = { csv: "CSV", json: "JSON", arrow: "Arrow" };

export class Downloads {
  /** `main`: what is shown, with `viewPath(format)` where it is windows, and `picture`, the element to be pictured. */
  constructor({ stream, state }, group, main) {
    Object.assign(this, { stream, state, main });
    this.names = group.map((query) => query.name);
    this.note = element("p", { class: "quiet", role: "status" });
    const view = main.viewPath
      ? element(
          "button",
          { type: "button", class: "btn", onclick: () => this.saveView() },
          element("span", {}, "This view, CSV"),
          icon("save"),
        )
      : null;
    this.element = element(
      "section",
      { class: "card downloads" },
      element("h3", {}, "Download"),
      view,
      row("All releases", ...Object.entries(FORMATS).map(([format, title]) => this.releases(format, title))),
      row("Picture of the chart", this.pictured("SVG"), this.pictured("PNG")),
      element(
        "button",
        { type: "button", class: "btn", onclick: () => this.link() },
        element("span", {}, "Link to this view"),
        icon("link"),
      ),
      this.note,
    );
  }

  nameOf = (ending) => `${this.stream.name}-${this.names.join("-")}${ending}`;

  tell(words) {
    setText(this.note, words);
  }

  saveView() {
    save(this.main.viewPath("csv"), this.nameOf("-view.csv")).catch((error) => this.tell(error.message));
  }

  /** A link cannot carry a token, so with one the file is fetched and saved. */
  releases(format, title) {
    const href = pathOf("v1/releases", { query: this.names, limit: LIMIT, format });
    const download = this.nameOf(`.${format}`);
    const about = { title: "At most the last 10,000 releases", "aria-label": `All releases as ${title}` };
    const fetched = (event) => {
      if (!hasToken()) return;
      event.preventDefault();
      save(href, download).catch((error) => this.tell(error.message));
    };
    return element("a", { href, download, ...about, onclick: fetched }, title);
  }

  pictured(title) {
    const take = async () => {
      const drawn = pictureOf(this.main.picture);
      if (!drawn) return this.tell("There is nothing to be pictured yet.");
      const blob =
        title === "PNG"
          ? await pngOf(drawn)
          : new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" });
      saveBlob(blob, this.nameOf(`.${title.toLowerCase()}`));
    };
    const about = { type: "button", class: "link", "aria-label": `Picture as ${title}` };
    return element("button", { ...about, onclick: take }, title);
  }

  /** Where the clipboard is closed to pages (without TLS), the link is shown, ready to be copied. */
  async link() {
    const address = new URL(this.state.address(), location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      this.tell("Copied. The link shows what you see; it holds no token.");
    } catch {
      const shown = element("input", { readonly: true, value: address, "aria-label": "Link to this view" });
      this.note.replaceChildren(shown);
      shown.select();
    }
  }
}

const row = (title, ...links) =>
  element("div", { class: "btn row" }, element("span", {}, title), element("span", { class: "choices" }, ...links));
