/** The clock of a stream is even: where every tick ends is known from its start and its length. */

export class Clock {
  constructor({ start, tick_seconds: seconds, tick_length: length }) {
    this.timed = seconds !== null;
    this.start = this.timed ? Date.parse(start) / 1000 : Number(start);
    this.length = this.timed ? seconds : length;
  }

  /** Where the end of a tick stands on the time axis: seconds since 1970, or the integer of an integer clock. */
  at = (tick) => this.start + tick * this.length;

  tickAt = (x) => (x - this.start) / this.length;

  /** The end of a tick as answers write it. */
  written(tick) {
    if (!this.timed) return this.at(tick);
    return new Date(this.at(tick) * 1000).toISOString().replace(".000Z", "Z");
  }
}
