/**
 * A picture of what is drawn in an element, to be saved: one SVG that needs no style sheet, or the same as PNG.
 *
 * The policy of the page lets it show images of this server only, so the PNG is painted shape by shape.
 */

const SPACE = "http://www.w3.org/2000/svg";
const SHAPES = "path, line, rect, circle, text";
const LOOKS = {
  fill: "none",
  "fill-opacity": "1",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-opacity": "1",
  "stroke-dasharray": "none",
  "stroke-linejoin": "miter",
  "stroke-linecap": "butt",
  opacity: "1",
  "font-size": "12px",
  "font-weight": "400",
  "font-family": "sans-serif",
  "text-anchor": "start",
};
const EDGE = 16; // pixels around
const TITLE = 28; // pixels for the title

/** All drawings in an element, where they stand, with its title above; null if there are none. */
export function pictureOf(place) {
  const found = [...place.querySelectorAll("svg")].filter(
    (one) => !one.closest("button, a, li, .brush") && one.getBoundingClientRect().width > 60,
  );
  if (!found.length) return null;
  const boxes = found.map((one) => one.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  const width = Math.max(...boxes.map((box) => box.right)) - left + 2 * EDGE;
  const height = Math.max(...boxes.map((box) => box.bottom)) - top + 2 * EDGE + TITLE;
  const card = getComputedStyle(place);
  const made = shape("svg", { xmlns: SPACE, width, height, viewBox: `0 0 ${width} ${height}` });
  made.append(shape("rect", { width, height, fill: card.backgroundColor }));
  const type = { "font-size": "15px", "font-weight": "600", "font-family": card.fontFamily, fill: card.color };
  const title = shape("text", { x: EDGE, y: EDGE + 12, ...type });
  title.textContent = place.querySelector("h2, h3")?.textContent ?? "";
  made.append(title);
  for (const [i, drawing] of found.entries()) {
    const x = boxes[i].left - left + EDGE;
    const y = boxes[i].top - top + EDGE + TITLE;
    const group = shape("g", { transform: `translate(${x} ${y})` });
    for (const part of drawing.querySelectorAll(SHAPES)) if (!part.closest("defs, .cross")) group.append(styled(part));
    made.append(group);
  }
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** A copy with its looks written down, moved to where it stands in its drawing. */
function styled(part) {
  const copy = part.cloneNode(true);
  const style = getComputedStyle(part);
  copy.removeAttribute("class");
  for (const [name, usual] of Object.entries(LOOKS)) {
    const value = style.getPropertyValue(name);
    const kept = value && (value !== usual || name === "fill");
    if (kept) copy.setAttribute(name, value.startsWith("url(") ? "none" : value);
  }
  const { a, b, c, d, e, f } = part.getCTM();
  copy.setAttribute("transform", `matrix(${a} ${b} ${c} ${d} ${e} ${f})`);
  return copy;
}

/** The picture as PNG, twice as fine. */
export function pngOf(picture) {
  const canvas = document.createElement("canvas");
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
  canvas.width = Math.ceil(width * 2);
  canvas.height = Math.ceil(height * 2);
  const pen = canvas.getContext("2d");
  for (const part of picture.querySelectorAll(SHAPES)) {
    pen.setTransform(2, 0, 0, 2, 0, 0);
    for (const moved of [part.parentElement, part]) apply(pen, moved.getAttribute("transform"));
    paint(pen, part);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function apply(pen, transform) {
  const numbers = (transform?.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  if (numbers.length === 2) pen.translate(...numbers);
  if (numbers.length === 6) pen.transform(...numbers);
}

function paint(pen, part) {
  const at = (name, usual = 0) => Number.parseFloat(part.getAttribute(name) ?? usual);
  const see = at("opacity", 1);
  pen.setLineDash((part.getAttribute("stroke-dasharray")?.match(/[\d.]+/g) ?? []).map(Number));
  pen.lineWidth = at("stroke-width", 1);
  pen.lineJoin = part.getAttribute("stroke-linejoin") ?? "miter";
  pen.lineCap = part.getAttribute("stroke-linecap") ?? "butt";
  const fill = part.getAttribute("fill") ?? "none";
  const stroke = part.getAttribute("stroke") ?? "none";
  const outline = outlineOf(part, at);
  if (fill !== "none") {
    pen.globalAlpha = see * at("fill-opacity", 1);
    pen.fillStyle = fill;
    if (outline) pen.fill(outline);
    else write(pen, part, at);
  }
  if (stroke !== "none" && outline) {
    pen.globalAlpha = see * at("stroke-opacity", 1);
    pen.strokeStyle = stroke;
    pen.stroke(outline);
  }
}

function write(pen, part, at) {
  const [weight, size, family] = ["font-weight", "font-size", "font-family"].map(
    (name) => part.getAttribute(name) ?? LOOKS[name],
  );
  pen.font = `${weight} ${size} ${family}`;
  pen.textAlign = { middle: "center", end: "right" }[part.getAttribute("text-anchor")] ?? "left";
  pen.fillText(part.textContent, at("x"), at("y"));
}

/** Null for a text. */
function outlineOf(part, at) {
  if (part.tagName === "path") return new Path2D(part.getAttribute("d"));
  if (part.tagName === "text") return null;
  const outline = new Path2D();
  if (part.tagName === "rect") outline.roundRect(at("x"), at("y"), at("width"), at("height"), at("rx"));
  if (part.tagName === "circle") outline.arc(at("cx"), at("cy"), at("r"), 0, 2 * Math.PI);
  if (part.tagName === "line") {
    outline.moveTo(at("x1"), at("y1"));
    outline.lineTo(at("x2"), at("y2"));
  }
  return outline;
}
