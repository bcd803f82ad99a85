/** The result: before and after under a divider, likeness, warnings, times, download. */

import { element } from "./dom.js";
import { carry } from "./marks.js";
import { waterfall } from "./waterfall.js";
import { nameFor, time, warning } from "./words.js";

const section = document.getElementById("result");
const find = (selector) => section.querySelector(selector);
const [compare, before, after] = [".compare", ".before", ".after"].map(find);
const divider = find("input");
let urls = [];

// The range input serves the keyboard and screen readers; a pointer may take hold anywhere.
divider.oninput = () => compare.style.setProperty("--at", divider.value);
compare.onpointerdown = (event) => {
  compare.setPointerCapture(event.pointerId);
  follow(event);
};
compare.onpointermove = (event) => compare.hasPointerCapture(event.pointerId) && follow(event);

/**
 * Show an answer of /v1/swap.
 * @param {Object} answer with `wall_ms`, as `post` returns it
 * @param {File} target the photo that was changed
 */
export async function show(answer, target) {
  urls.forEach((url) => URL.revokeObjectURL(url));
  const { media_type: type, base64 } = answer.image;
  const image = new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type });
  urls = [target, image].map((file) => URL.createObjectURL(file));
  [before.src, after.src] = urls;
  const name = nameFor(target.name, type);
  Object.assign(find(".download"), { href: urls[1], download: name });
  carry(answer.marks, new File([image], name, { type }));
  compare.parentElement.style.setProperty("--ratio", answer.width / answer.height);
  section.hidden = false;
  const [shown] = await Promise.allSettled([before.decode(), after.decode()]);
  const comparable = shown.status === "fulfilled"; // a HEIC photo, say, has no before here
  compare.classList.toggle("single", !comparable);
  divider.disabled = !comparable;
  divide(opening(answer));
  const pictures = comparable ? [before, after] : [after];
  find(".faces").replaceChildren(...answer.faces.map((face) => likeness(face, pictures)));
  warn(answer);
  times(answer);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  section.scrollIntoView({ behavior: still ? "instant" : "smooth" });
}

/** Where the divider begins: left of a face, so that it is seen whole, but with a "before" to see. */
function opening({ faces, width }) {
  const lefts = faces.map(({ box }) => (100 * box.left) / width - 3).sort((a, b) => a - b);
  const free = lefts.find((left) => left >= 15 && left <= 60);
  const [{ box }] = faces;
  return free ?? Math.min(Math.max((50 * (box.left + box.right)) / width, 15), 85);
}

function divide(percent) {
  divider.value = percent;
  divider.oninput();
}

function follow(event) {
  const { left, width } = compare.getBoundingClientRect();
  if (!divider.disabled) divide((100 * (event.clientX - left)) / width);
}

function likeness({ index, box, identity }, pictures) {
  const gauge = element("span", { className: "gauge" }, element("i"), element("b"));
  gauge.style.setProperty("--before", Math.min(identity.before, 1));
  gauge.style.setProperty("--after", Math.min(identity.after, 1));
  const numbers = `${identity.before.toFixed(2)} → ${identity.after.toFixed(2)}`;
  const words = element("span", {}, `Face ${index + 1}: ${numbers}`, gauge);
  return element("li", {}, ...pictures.map((picture) => crop(picture, box)), words);
}

/** The square around a box, as a small picture. */
function crop(picture, { left, top, right, bottom }) {
  const side = 1.15 * Math.max(right - left, bottom - top);
  const [x, y] = [(left + right - side) / 2, (top + bottom - side) / 2];
  const canvas = element("canvas", { width: 128, height: 128 });
  canvas.getContext("2d").drawImage(picture, x, y, side, side, 0, 0, 128, 128);
  return canvas;
}

function warn({ faces, warnings }) {
  const name = ({ index }) => (faces.length > 1 ? `Face ${index + 1}: ` : "");
  const own = faces.flatMap((face) => face.warnings.map((code) => name(face) + warning(code)));
  const said = new Set(faces.flatMap((face) => face.warnings));
  const texts = [...own, ...warnings.filter((code) => !said.has(code)).map(warning)];
  find(".warnings").hidden = texts.length === 0;
  find(".warnings ul").replaceChildren(...texts.map((text) => element("li", {}, text)));
}

/** Where the time went, on the clock of the request. */
function times({ timings, wall_ms }) {
  const spans = timings.map(({ stage, start_ms, ms }) => {
    return { name: stage, start_ms, end_ms: start_ms + ms };
  });
  find("tbody").replaceChildren(...waterfall(spans));
  const end = Math.max(...spans.map((span) => span.end_ms));
  find("caption").textContent =
    `${time(wall_ms)} from click to answer, ${time(end)} of it in the server.`;
}
