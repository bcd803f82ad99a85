/** Codes and numbers in plain words. An unknown code is shown as it is. */

const WARNINGS = {
  extreme_pose: "The head is turned far, and the swap shows it.",
  low_resolution_source: "The source face is far smaller than the face it replaces: it looks soft.",
  occluded: "Glasses, hair or a hand cover part of the face and may be painted over.",
  extreme_light: "A face is overexposed or very dark, and the swap shows it.",
  gray_source: "The source photo has no colour; the skin's was taken from the target.",
  low_similarity: "The face resembles the source less than a good swap does.",
  several_source_faces: "A source photo shows several faces; the largest was used.",
  sources_differ: "The source photos do not seem to show one and the same person.",
  first_frame: "The image is animated or has several pages; only the first was used.",
  alpha_flattened: "This format has no transparency; transparent parts were put on white.",
  no_end: "The JPEG lacks its end, as if a few bytes were lost; all of the picture is there.",
  unsigned: "It could not be signed; the other marks are on it.",
  person_missing: "A person who was to be replaced is not on the photo.",
  sound_left_out: "A further sound track has an unknown coding and was left out.",
};

const PHASES = {
  unknown: "asking…",
  cold: "cold, waking…",
  idle: "ready a while ago",
  starting: "starting…",
  fetching: "fetching weights…",
  loading: "loading models…",
  warming: "warming up…",
};

const JOBS = {
  running: "Working…",
  succeeded: "Done.",
  partly: "Done in part.",
  cancelled: "Cancelled.",
  deleted: "Deleted.",
};

/** What a refusal means for whoever asked: what may be wrong with it, and nobody's fault. */
const REFUSALS = {
  refused_content:
    "It may be a mistake: statues, paintings and swimwear are sometimes taken for more than they are.",
  refused_identity: "Faces can resemble each other, so it may be a mistake.",
  refused_age: "Age is only estimated from a photo, so it may be a mistake.",
  consent_required: "Nothing has been made of your photos. Press Swap when somebody can state it.",
};

const ORIGINS = {
  compositeCapture: "put together from photos",
  compositeWithTrainedAlgorithmicMedia: "put together with a face that a model has made",
};

const LIVES = {
  unknown: "It is being asked.",
  cold: "None answers yet. If all are asleep, the call of this page has woken one: choose photos meanwhile.",
  idle: "It is asked again as soon as you do something; one that has gone to sleep wakes then.",
  unreachable: "None has answered for minutes. Either the server is not there, or it does not let this page call.",
  failed: "This one cannot be used any more.",
  draining: "This one is about to end.",
};

/** What the replica is doing. @param {Replica} replica @param {number} end_ms of its latest span */
export function life({ phase, waited_ms: waited }, end_ms) {
  if (phase in LIVES) return LIVES[phase];
  if (phase !== "ready") return "Its start goes on; these are the steps that have been done.";
  const patience = waited === null ? "" : ` This page has waited ${time(waited)} for it.`;
  return `It was ready ${time(end_ms)} after its process had begun.${patience}`;
}

/** How far a job is. @param {Object} job @returns {string} a sentence */
export function job({ state, position, eta_s: eta, items }) {
  const soon = eta ? `, about ${Math.ceil(eta)}\u00a0s` : "";
  if (state === "queued") return position ? `Waiting behind ${position}${soon}.` : `Next${soon}.`;
  const problem = items.find((item) => item.problem)?.problem;
  if (state === "failed") return problem?.detail ?? "Failed.";
  return JOBS[state] ?? state;
}

const EXTENSIONS = { jpeg: "jpg", quicktime: "mov", "x-matroska": "mkv" };

/** What a result is saved as. @param {string} name of the photo @param {string} type */
export function nameFor(name, type) {
  const [, kind] = type.split("/");
  const extension = EXTENSIONS[kind] ?? kind;
  return `${name.replace(/\.[^.]*$/, "") || "photo"}-ember.${extension}`;
}

/** @param {string} code @returns {string} a sentence */
export const warning = (code) => WARNINGS[code] ?? code;

/** @param {string} code @returns {?string} a sentence where the server refuses a swap, or null */
export const refusal = (code) => REFUSALS[code] ?? null;

/** How a file was made. @param {string} type a term of IPTC @returns {string} a few words */
export const origin = (type) => ORIGINS[type] ?? `made as ${type}`;

/** Where the mark is. @param {string} where @param {number} face @returns {string} a few words */
export const place = (where, face) => `in ${where === "face" ? `face ${face + 1}` : `the ${where}`}`;

/** Where all of the marks are. @param {Object} watermark @returns {string} "in faces 1 and 2" */
export function places({ faces, picture }) {
  if (!faces.length) return picture ? "in the whole picture" : "in the faces";
  const numbers = new Intl.ListFormat("en").format(faces.map((face) => String(face + 1)));
  const some = `in ${faces.length === 1 ? "face" : "faces"} ${numbers}`;
  return picture ? `${some} and in the whole picture` : some;
}

/** @param {number} value in standard deviations @returns {string} "9.4 σ above chance" */
export const confidence = (value) => `${value.toFixed(1)}\u00a0σ above chance`;

/** @param {string} when in ISO 8601 @returns {string} "1 Dec 2026" */
export const day = (when) => new Date(when).toLocaleDateString("en-GB", { dateStyle: "medium" });

/** What a swap once carried and does not any more. @param {string[]} lost @returns {string} */
export function gone(lost) {
  const all = new Intl.ListFormat("en").format(lost);
  return `${all[0].toUpperCase()}${all.slice(1)}, as happens with screenshots and messengers.`;
}

/** What a check has found, in one line. @param {Object} answer of /v1/verify @returns {string} */
export function verdict({ verdict: found, signature, metadata }) {
  if (found !== "swap") return "No sign of a swap was found; that proves nothing.";
  const by = signature?.valid && signature.swap && signature.by;
  if (by && signature.trusted) return `This is a face swap, made by ${by}.`;
  if (by) return `This is a face swap, signed as ${by}, whom this server does not know.`;
  const broken = signature && !signature.valid ? "; its signature does not hold" : "";
  if (metadata?.software) return `This is a face swap, made with ${metadata.software}${broken}.`;
  return `This is a face swap: the mark in its pixels says so${broken}.`;
}

/** @param {string} phase @returns {string} a few words */
export const doing = (phase) => PHASES[phase] ?? phase;

/** @param {number} count @param {string} noun @returns {string} "1 face", "2 faces" */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** @param {number} ms @returns {string} "3.4 ms", "212 ms", "1.94 s" */
export function time(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
