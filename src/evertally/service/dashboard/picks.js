/** Which labels have a line, and in which colour. A colour stays with its label while it is picked. */

export const SLOTS = 6;

export class Picks {
  constructor(limit = SLOTS - 1) {
    this.limit = limit;
    this.slots = new Map(); // label -> number of its colour, oldest first
    this.chosen = false; // whether the reader chose: then nothing changes by itself
  }

  has = (label) => this.slots.has(label);
  slot = (label) => this.slots.get(label) ?? null;
  labels = () => [...this.slots.keys()].sort((a, b) => this.slots.get(a) - this.slots.get(b));

  /** The best labels get the lines, as long as the reader has not picked any. */
  follow(best) {
    if (this.chosen) return;
    const wanted = best.slice(0, this.limit);
    for (const label of this.labels()) if (!wanted.includes(label)) this.slots.delete(label);
    for (const label of wanted) if (!this.has(label)) this.slots.set(label, this.free());
  }

  /** The reader picks a label, or drops it. When all colours are taken the oldest pick makes room. */
  toggle(label) {
    this.chosen = true;
    if (this.slots.delete(label)) return;
    if (this.slots.size === SLOTS) this.slots.delete(this.slots.keys().next().value);
    this.slots.set(label, this.free());
  }

  free() {
    const taken = new Set(this.slots.values());
    return Array.from({ length: SLOTS }, (_, slot) => slot).find((slot) => !taken.has(slot));
  }
}
