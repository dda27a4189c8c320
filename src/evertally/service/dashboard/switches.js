/** Switches: a few buttons of which one is pressed. */

import { element } from "./dom.js";

/** Words that are shorter on a phone. */
export function words(long, short = long) {
  if (long === short) return [long];
  return [element("span", { class: "desk" }, long), element("span", { class: "phone" }, short)];
}

export const shortOf = (text) => text.replace(/ days?$/, " d").replace(/ weeks?$/, " w").replace(/ hours?$/, " h");

/** `options`: [{key, content: [...], name}]; `choose(key)` hears the reader. `mark(key)` presses a button. */
export class Switch {
  constructor(name, options, choose, kind = "") {
    this.buttons = new Map(
      options.map(({ key, content, name: title = null }) => [
        key,
        element(
          "button",
          { type: "button", "aria-label": title, title, "aria-pressed": "false", onclick: () => choose(key) },
          ...content,
        ),
      ]),
    );
    const group = { class: `seg ${kind}`, role: "group", "aria-label": name };
    this.element = element("span", group, ...this.buttons.values());
  }

  mark(chosen) {
    for (const [key, button] of this.buttons) button.setAttribute("aria-pressed", String(key === chosen));
  }
}
