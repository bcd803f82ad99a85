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
  sound_left_out: "A further sound track has an unknown coding and was left out.",
};

const PHASES = {
  unknown: "asking the replica…",
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

/** How far a job is. @param {Object} job @returns {string} a sentence */
export function job({ state, position, eta_s: eta, items }) {
  const soon = eta ? `, about ${Math.ceil(eta)}\u00a0s` : "";
  if (state === "queued") return position ? `Waiting behind ${position}${soon}.` : `Next${soon}.`;
  const problem = items.find((item) => item.problem)?.problem;
  if (state === "failed") return problem?.detail ?? "Failed.";
  return JOBS[state] ?? state;
}

/** What a result is saved as. @param {string} name of the photo @param {string} type */
export function nameFor(name, type) {
  const extension = type.replace("image/", "").replace("jpeg", "jpg");
  return `${name.replace(/\.[^.]*$/, "") || "photo"}-ember.${extension}`;
}

/** @param {string} code @returns {string} a sentence */
export const warning = (code) => WARNINGS[code] ?? code;

/** @param {string} phase @returns {string} a few words */
export const doing = (phase) => PHASES[phase] ?? phase;

/** @param {number} count @param {string} noun @returns {string} "1 face", "2 faces" */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** @param {number} ms @returns {string} "3.4 ms", "212 ms", "1.94 s" */
export function time(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
