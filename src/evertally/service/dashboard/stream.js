/**
 * The live releases, read by fetch because an EventSource cannot send a token.
 *
 * A lost connection is opened again, at longer and longer intervals, and goes on after the last tick that arrived: the
 * service sends what was missed, so there are no gaps.
 */

import { get, Refused } from "./api.js";

const WAITS = [0.5, 1, 2, 4, 8, 15]; // seconds before each next try
const SILENCE = 45; // seconds without a byte after which a connection is given up: a heartbeat comes every 15

/** The events of a text/event-stream; a comment arrives as an event without data. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r", "");
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) yield parse(block);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block) {
  const event = { type: "message", id: null, data: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "event") event.type = value;
    else if (field === "id") event.id = value;
    else if (field === "data") event.data += event.data ? `\n${value}` : value;
  }
  return event;
}

/**
 * Follows the stream after tick `after` until it ends or `signal` aborts; returns the last tick that arrived.
 *
 * `onRelease(release)` gets every release once, in order. `onState(state, seconds)` gets "live", "lost" or "ended", and
 * with "lost" how long it waits before it tries again; an event "hurry" of `signal` ends the wait.
 * Raises Refused if the service wants a token.
 */
export async function follow({ after, signal, onRelease, onState }) {
  let last = after;
  let failures = 0;
  while (!signal.aborted) {
    const watch = watchdog(signal);
    try {
      const response = await get("v1/releases/live", {
        headers: { "Last-Event-ID": String(last) },
        signal: watch.signal,
      });
      onState("live");
      for await (const event of events(response.body)) {
        watch.stir();
        failures = 0;
        if (event.type === "ended") {
          onState("ended");
          return last;
        }
        if (event.type !== "release") continue;
        const release = JSON.parse(event.data);
        if (release.tick <= last) continue;
        last = release.tick;
        queueMicrotask(() => onRelease(release)); // what fails there is an error of the page, not of the connection
      }
    } catch (error) {
      if (error instanceof Refused && [401, 403].includes(error.status)) throw error;
    } finally {
      watch.stop();
    }
    if (signal.aborted) break;
    const wait = WAITS[Math.min(failures++, WAITS.length - 1)] * (0.75 + 0.5 * Math.random()); // readers are spread out
    onState("lost", wait);
    await pause(wait, signal);
  }
  return last;
}

/** A signal that aborts with `outer`, or after a silence. */
function watchdog(outer) {
  const inner = new AbortController();
  let timer;
  const stir = () => {
    clearTimeout(timer);
    timer = setTimeout(() => inner.abort(), SILENCE * 1000);
  };
  stir();
  return { signal: AbortSignal.any([outer, inner.signal]), stir, stop: () => clearTimeout(timer) };
}

/** Waits, but no longer than until the network is back or the reader is in a hurry. */
export function pause(seconds, signal) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const end = () => {
      clearTimeout(timer);
      over.abort();
      resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    addEventListener("online", end, { signal: over.signal });
    for (const name of ["abort", "hurry"]) signal.addEventListener(name, end, { signal: over.signal });
  });
}
