/** What the replica is doing: the chip, and behind it how its start goes. */

import { say } from "./dom.js";
import { waterfall } from "./waterfall.js";
import { doing, life } from "./words.js";

const panel = document.getElementById("replica");
const chip = document.getElementById("phase");
const [words, table, rows] = [".soft", "table", "tbody"].map((name) => panel.querySelector(name));

document.addEventListener("pointerdown", ({ target }) => {
  if (!panel.contains(target)) panel.open = false;
});
panel.onkeydown = (event) => {
  if (event.key !== "Escape") return;
  panel.open = false;
  panel.querySelector("summary").focus();
};

/** Show where it is in its life. @param {import("./api.js").Replica} replica */
export function tell(replica) {
  const devices = replica.providers.map((name) => name.replace("ExecutionProvider", ""));
  panel.dataset.phase = replica.phase;
  say(chip, [doing(replica.phase), ...(replica.phase === "ready" ? devices : [])].join(" · "));
  const spans = replica.spans.map(({ name, start_s, end_s }) => {
    return { name: name.replace(/ [\d×]+$/, ""), start_ms: 1000 * start_s, end_ms: 1000 * end_s };
  });
  const end = Math.max(0, ...spans.map((span) => span.end_ms));
  words.textContent = life(replica, end);
  table.hidden = spans.length === 0;
  rows.replaceChildren(...waterfall(spans));
}
