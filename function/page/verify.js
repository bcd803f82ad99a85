/** The check of a file: what it carries that says where it comes from, and what that means. */

import { Alert } from "./alert.js";
import { post } from "./api.js";
import { element, say } from "./dom.js";
import { finding } from "./findings.js";
import { keys } from "./key.js";
import { confidence, day, gone, origin, place, verdict } from "./words.js";

const section = document.getElementById("verify");
const find = (selector) => section.querySelector(selector);
const [stage, input, note, found] = [".stage", "input", ".note", "#found"].map(find);
const alert = new Alert(find(".alert"));
/** What waits for the replica, set by `start`. @type {import("./api.js").Replica} */
let replica;
/** The file that is shown, and the check that is under way. */
let [file, running, url] = [null, null, null];

input.onchange = () => {
  if (input.files.length) check(input.files[0]);
  input.value = ""; // so that choosing the same file again is a change
};
for (const button of section.querySelectorAll(".choose")) button.onclick = () => input.click();
for (const type of ["dragover", "dragleave", "drop"]) {
  stage.addEventListener(type, (event) => {
    const leaves = event.type === "dragleave" && !stage.contains(event.relatedTarget);
    const over = event.dataTransfer.types.includes("Files") && !leaves && event.type !== "drop";
    stage.parentElement.classList.toggle("over", over);
  });
}
keys.addEventListener("change", () => file && found.hidden && check(file));

/** @param {import("./api.js").Replica} asked whose readiness is waited for */
export const start = (asked) => (replica = asked);

/** Go to this view and check a file. @param {File} chosen */
export async function check(chosen) {
  location.hash = "#verify";
  running?.abort();
  const mine = (running = new AbortController());
  preview(chosen);
  alert.show(null);
  found.hidden = true;
  find(".before").hidden = false;
  say(note, "Looking…");
  const form = new FormData();
  form.append("file", chosen);
  try {
    const answer = await post("/v1/verify", form, replica, mine.signal);
    tell(answer);
    say(note, `${answer.media_type}, ${answer.width} × ${answer.height}`);
  } catch (problem) {
    if (mine.signal.aborted) return;
    say(note, "This file cannot be checked.");
    alert.show(problem);
    alert.focus();
  }
}

function preview(chosen) {
  URL.revokeObjectURL(url);
  file = chosen;
  url = URL.createObjectURL(chosen);
  const image = element("img", { src: url, alt: chosen.name });
  image.onerror = () => image.replaceWith(element("p", {}, chosen.name));
  stage.querySelector(".frame").replaceChildren(image);
  stage.dataset.count = 1;
  find(".empty").hidden = true;
  find(".more").disabled = false;
}

function tell(answer) {
  find(".before").hidden = true;
  found.hidden = false;
  found.dataset.verdict = answer.verdict;
  const { metadata, watermarks, lost } = answer;
  const rows = [
    signature(answer.signature),
    finding("Metadata", metadata, ...(metadata ? description(metadata) : ["None that says so."])),
    finding("Watermark", watermarks.length, ...(watermarks.length ? watermarks.map(mark) : ["None."])),
  ];
  if (lost.length) rows.push(finding("Lost", "bad", gone(lost)));
  found.querySelector("ul").replaceChildren(...rows);
  const notes = answer.notes.map((text) => element("p", {}, text));
  found.querySelector(".notes").replaceChildren(...notes);
  say(found.querySelector(".verdict"), verdict(answer));
}

function signature(signed) {
  if (!signed) return finding("Signature", null, "None.");
  const { valid, trusted, by, when, problems } = signed;
  const known = trusted ? "" : ", whom this server does not know";
  const holds = `Valid, by ${by}${known}${when ? `, ${day(when)}` : ""}.`;
  const words = valid ? holds : `Does not hold; it says that it is by ${by}.`;
  const causes = problems.map((text) => element("span", { className: "soft" }, text));
  const state = valid ? (trusted ? "there" : "doubt") : "bad";
  return finding("Signature", state, words, ...causes);
}

function* description({ source_type: type, software, request_id: id, aigc }) {
  const by = software ? `, by ${software}` : "";
  yield type ? `Say that it was ${origin(type)}${by}.` : `Do not say how it was made${by}.`;
  if (id) yield element("span", { className: "soft" }, "Request ", element("code", {}, id));
  const fields = Object.entries(aigc ?? {}).filter(([, value]) => value);
  const text = fields.map(([name, value]) => `${name} ${value}`).join(", ");
  if (text) yield element("span", { className: "soft" }, `AIGC: ${text}`);
}

function mark({ payload, key, confidence: value, where, face }) {
  const words = `${place(where, face)}, ${confidence(value)} (key\u00a0${key})`;
  return element("span", {}, element("code", {}, payload), ` ${words}`);
}
