/** The page: two zones, one button, one result. */

import { Alert } from "./alert.js";
import { Problem, Replica, post } from "./api.js";
import * as consent from "./consent.js";
import { say } from "./dom.js";
import { add } from "./jobs.js";
import { keys } from "./key.js";
import { tell } from "./life.js";
import { show } from "./result.js";
import { check, start } from "./verify.js";
import { checking } from "./views.js";
import { doing, refusal, time } from "./words.js";
import { Zone } from "./zone.js";

const LINK = {
  title: "That was a link, and not the photo itself",
  detail: "This page loads nothing from other places.",
  hint: "Copy the photo there (“Copy image”) and paste it here; or save it, and drop the file.",
};

const get = (id) => document.getElementById(id);
const [swap, cancel, reason] = ["swap", "cancel", "reason"].map(get);
const alert = new Alert(get("alert"));
const replica = new Replica();
const zones = ["source", "target"].map((id) => new Zone(get(id), replica));
const [source, target] = zones;
/** The swap that is under way. @type {?AbortController} */
let running = null;
/** Whether the replica answers. */
let present = false;
/** How the last swap ended, until something changes. */
let outcome = "";

for (const zone of zones) {
  zone.addEventListener("change", () => {
    outcome = "";
    alert.show(source.problem ?? target.problem);
    refresh();
  });
}
replica.addEventListener("change", () => {
  tell(replica);
  refresh();
  if (replica.phase === "ready" && !present) again(({ code }) => !code); // nobody was there
  present = !replica.warming && replica.phase !== "unreachable";
});
keys.addEventListener("change", () => again(() => true));
for (const type of ["pointerdown", "keydown", "dragenter", "visibilitychange"]) {
  document.addEventListener(type, () => document.hidden || replica.intend());
}
swap.onclick = () => blocked() || agreed();
cancel.onclick = () => running.abort();
get("format").onchange = () => (get("quality").disabled = get("format").value === "png");

const focus = () => document.activeElement;
document.addEventListener("paste", (event) => place(event, event.clipboardData, focus()));
document.addEventListener("drop", (event) => place(event, event.dataTransfer, event.target));
document.addEventListener("dragover", (event) => event.preventDefault()); // a miss must not leave

start(replica);
replica.check();

/** Give pasted or dropped files to the zone they touch, or else to the first with room. */
function place(event, data, where) {
  const { files } = data;
  const [link] = event.type === "drop" ? data.getData("text/uri-list").split(/\s/, 1) : [];
  if (!files.length && !link) return;
  event.preventDefault();
  if (checking()) return files.length ? check(files[0]) : undefined;
  const touched = zones.find((zone) => zone.element.contains(where));
  const zone = touched ?? zones.find((each) => !each.photos.length) ?? target;
  if (files.length) zone.add([...files]);
  else if (link.startsWith(`${location.origin}/`)) zone.load(link);
  else alert.show(new Problem(LINK));
}

/** Why a swap cannot be asked for now, or null. */
function blocked() {
  if (!source.photos.length) return "Choose the face to put in.";
  if (!target.photos.length) return "Choose the photo to change.";
  return source.obstacle ?? target.obstacle;
}

function status() {
  const wait = replica.warming ? `The replica is ${doing(replica.phase)} ` : "";
  if (running) return wait ? `${wait}The swap starts when it is ready.` : "Swapping…";
  return outcome || blocked() || (wait && `${wait}You may swap already.`);
}

function refresh() {
  swap.ariaDisabled = String(blocked() !== null);
  swap.classList.toggle("running", running !== null);
  const focused = document.activeElement === cancel;
  cancel.hidden = running === null;
  if (focused && cancel.hidden) swap.focus();
  say(reason, status());
}

/** Look again at photos that have failed for such a reason. */
function again(why) {
  const photos = zones.flatMap((zone) => zone.photos);
  for (const photo of photos) if (photo.problem && why(photo.problem)) photo.again();
}

/** Swap, once somebody has stated that the person agrees, where the server wants that. */
async function agreed(problem = null) {
  const refused = problem && consent.statement() ? problem : null; // words may not be enough
  const way = refused ? "signed" : replica.trust.consent;
  if (problem) consent.forget();
  if ((problem || consent.missing(way)) && !(await consent.ask(way, refused))) {
    outcome = "Not swapped.";
    refresh();
    if (problem) alert.show(problem);
  } else run();
}

async function run() {
  running?.abort();
  const mine = (running = new AbortController());
  const [photo] = target.photos;
  const form = new FormData();
  for (const { file } of source.photos) form.append("source", file);
  form.append("target", photo.file);
  form.append("faces", photo.selection);
  for (const name of ["format", "quality", "label"]) {
    const meant = get(name).value && !get(name).disabled && !(photo.video && name === "format");
    if (meant) form.append(name, get(name).value);
  }
  if (consent.statement()) form.append("consent", consent.statement());
  alert.show(null);
  refresh();
  let [ended, problem] = ["Cancelled.", null];
  try {
    ended = await send(form, photo, mine.signal);
  } catch (error) {
    if (!mine.signal.aborted) {
      [ended, problem] = [refusal(error.code) ? "Not swapped." : "The swap failed.", error];
    }
  }
  if (running !== mine) return; // a later swap has taken over
  running = null;
  outcome = ended;
  refresh();
  if (problem?.code === "consent_required") return agreed(problem);
  alert.show(problem);
  alert.focus();
}

/** Swap at once, or make a job: of videos, of long animations, and where it is wanted. */
async function send(form, { file, video }, signal) {
  if (!video && !get("later").checked) {
    try {
      const answer = await post("/v1/swap", form, replica, signal);
      await show(answer, file);
      return `Done in ${time(answer.wall_ms)}.`;
    } catch (error) {
      if (error.code !== "needs_job") throw error;
    }
  }
  add(await post(`/v1/jobs/${id()}`, form, replica, signal, "PUT"), file.name);
  return "It is a job now.";
}

/** An id that nobody guesses; `randomUUID` is not there on plain http. */
function id() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
