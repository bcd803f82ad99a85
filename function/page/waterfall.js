/** What took how long, on one clock: one row a name, one bar a span. */

import { element } from "./dom.js";
import { time } from "./words.js";

/**
 * @param {Array<{name: string, start_ms: number, end_ms: number}>} spans
 * @returns {HTMLTableRowElement[]}
 */
export function waterfall(spans) {
  const end = Math.max(...spans.map((span) => span.end_ms));
  const names = new Map();
  for (const span of spans) names.set(span.name, [...(names.get(span.name) ?? []), span]);
  return [...names].map(([name, all]) => {
    const track = element("td", { className: "track" });
    for (const { start_ms: start, end_ms } of all) {
      const bar = element("i");
      bar.style.left = `${(100 * start) / end}%`;
      bar.style.width = `${(100 * (end_ms - start)) / end}%`;
      track.append(bar);
    }
    const head = element("th", { scope: "row" }, name);
    return element("tr", {}, head, track, element("td", {}, time(covered(all))));
  });
}

/** How long at least one of the spans was under way: photos are worked on side by side. */
function covered(spans) {
  let [sum, until] = [0, 0];
  for (const { start_ms, end_ms } of spans.toSorted((a, b) => a.start_ms - b.start_ms)) {
    sum += Math.max(0, end_ms - Math.max(start_ms, until));
    until = Math.max(until, end_ms);
  }
  return sum;
}
