/** Bands that lie on each other say nothing: then every label gets a lane of its own, on one scale. */

const TOO_MANY = 0.55; // of all neighbouring pairs

/** Whether more than 55 % of the neighbouring lines reach into each other's bands. */
export function crowded(series) {
  const own = series.filter((one) => !one.soft);
  if (own.length < 2) return false;
  const moments = new Map();
  for (const { points } of own)
    for (const point of points)
      if (point.lower !== null) moments.set(point.x, [...(moments.get(point.x) ?? []), point]);
  let [pairs, over] = [0, 0];
  for (const points of moments.values()) {
    points.sort((a, b) => a.value - b.value);
    for (let i = 1; i < points.length; i++) {
      pairs += 1;
      if (points[i].lower < points[i - 1].value || points[i - 1].upper > points[i].value) over += 1;
    }
  }
  return pairs > 0 && over / pairs > TOO_MANY;
}
