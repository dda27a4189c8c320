/** Links to what the service answers with. A link cannot carry a token, so with one the file is fetched and saved. */

import { hasToken, releasesPath, save } from "./api.js";
import { element } from "./dom.js";

const LIMIT = 10_000; // ticks: what the service gives at once
const FORMATS = { csv: "CSV", arrow: "Arrow", json: "JSON" };

/** Makes a click on a link save the answer under this name, if there is a token; else the link is what it is. */
export function saving(link, filename, failed) {
  link.addEventListener("click", (event) => {
    if (!hasToken()) return;
    event.preventDefault();
    save(link.href, filename).catch(failed);
  });
  return link;
}

export function downloads(group, stream) {
  const names = group.map((query) => query.name);
  const note = element("span", { class: "wrong", role: "alert" });
  const links = Object.entries(FORMATS).map(([format, title]) => {
    const download = `${stream.name}-${names.join("-")}.${format}`;
    const about = { title: "At most the last 10,000 ticks", "aria-label": `${names.join(", ")} as ${title}` };
    const link = element("a", { href: releasesPath(names, { limit: LIMIT, format }), download, ...about }, title);
    return saving(link, download, (error) => (note.textContent = error.message));
  });
  return element("p", { class: "downloads" }, element("span", { class: "quiet" }, "Download"), ...links, note);
}
