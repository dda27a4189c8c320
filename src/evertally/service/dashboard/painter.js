/** Draws cards and tiles when they are in view and what they show has changed; asks for their answers before. */

const AGAIN = 3_000; // milliseconds until what did not come is asked for again
const AHEAD = "600px 0px"; // cards this far below are made ready

export class Painter {
  /** `failed(error)` hears what keeps answers from coming; true: no use in trying again. `painted()`: one was drawn. */
  constructor(views, failed, painted = () => {}) {
    Object.assign(this, { views, failed, painted, items: new Map() });
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: AHEAD });
  }

  /** `part`: a card or tile. `zoomable`: whether it follows what the reader has dragged out. */
  add(part, { zoomable = true } = {}) {
    const item = { part, zoomable, near: false, drawn: null, busy: false, asked: {} };
    this.items.set(part.element, item);
    this.observer.observe(part.element);
    return (name, wanted) => {
      item.asked[name] = wanted;
      item.drawn = null;
      this.paint(item);
    };
  }

  clear() {
    this.observer.disconnect();
    this.items.clear();
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const item = this.items.get(target);
      if (!item) continue;
      item.near = isIntersecting;
      this.paint(item);
    }
  }

  refresh() {
    for (const item of this.items.values()) this.paint(item);
  }

  /** One drawing at a time for each item: what changes meanwhile is drawn after it, once. */
  async paint(item) {
    const key = this.views.key(item.zoomable);
    if (!this.views.feed.ready || !item.near || item.busy || item.drawn === key) return;
    item.busy = true;
    item.part.element.setAttribute("aria-busy", "true");
    let view;
    try {
      view = await this.views.of(item.part, { part: item.zoomable, asked: item.asked });
      item.drawn = key;
    } catch (error) {
      if (!this.failed(error)) setTimeout(() => this.paint(item), AGAIN);
      return;
    } finally {
      item.busy = false;
      item.part.element.removeAttribute("aria-busy");
    }
    item.part.draw(view);
    this.painted();
    this.paint(item);
  }
}
