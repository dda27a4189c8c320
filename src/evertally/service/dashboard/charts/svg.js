/** Elements of drawings, and the widths of their words. */

/** A new SVG element; null and undefined attributes are left out. Text enters as text. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    made.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

let pen = null;

/** How wide a text is in the type of axes; what is measured never overlaps and is never cut. */
export function widthOf(text, weight = 400) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${weight} 12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** A text that is not wider than so many pixels. */
export function shortened(text, width, weight = 400) {
  if (widthOf(text, weight) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${text.slice(0, middle)}…`, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

let made = 0;

/** A hatched field: nothing is known there. */
export function hatching() {
  const id = `hatch-${++made}`;
  const line = svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: "hatch-line" });
  const pattern = svg(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    line,
  );
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}

/** Calls `draw` whenever the element has another size, not more than once a frame. */
export function whenSized(element, draw) {
  let size = "";
  new ResizeObserver(([entry]) => {
    const now = `${Math.round(entry.contentRect.width)} ${Math.round(entry.contentRect.height)}`;
    if (now === size) return;
    size = now;
    requestAnimationFrame(draw);
  }).observe(element);
}
