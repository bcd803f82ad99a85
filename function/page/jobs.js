/** The jobs of this tab, and with a key all of its owner's: how far they are, cancel, download. */

import { ask, result } from "./api.js";
import { element, say } from "./dom.js";
import { credentials, keys } from "./key.js";
import { job as words, nameFor, plural } from "./words.js";

const NAME = "ember-jobs";
const OFTEN_MS = 700;
const OPEN = new Set(["queued", "running"]);

const section = document.getElementById("jobs");
const list = section.querySelector("ul");
/** What is shown, by id. @type {Map<string, Row>} */
const rows = new Map();

/** Show a job. @param {Object} job as the server tells it @param {string} name of its photo */
export function add(job, name) {
  const row = new Row(job.id, name);
  rows.set(job.id, row);
  list.prepend(row.element);
  row.update(job);
  remember();
  return row;
}

/** Show what is known from before: of this tab, and with a key what the server lists. */
async function recall() {
  const known = JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
  const names = new Map(known.map(({ id, name }) => [id, name]));
  let jobs = await Promise.all([...names.keys()].map((id) => told(id)));
  if (credentials().Authorization) {
    const { jobs: listed } = await ask("GET", "/v1/jobs").catch(() => ({ jobs: [] }));
    const seen = new Set(listed.map(({ id }) => id));
    jobs = [...jobs.filter((job) => job && !seen.has(job.id)), ...listed.toReversed()];
  }
  for (const job of jobs) {
    const gone = !job || job.state === "deleted" || rows.has(job.id);
    if (!gone) add(job, names.get(job.id) ?? "photo");
  }
  remember();
}

const told = (id) => ask("GET", `/v1/jobs/${id}`).catch(() => null);

function remember() {
  section.hidden = rows.size === 0;
  const kept = [...rows.values()].map(({ id, name }) => ({ id, name }));
  sessionStorage.setItem(NAME, JSON.stringify(kept));
}

/** One job in the list. */
class Row {
  #job;
  #url;
  #said = element("span", { className: "soft", role: "status" });
  #count = element("span", { className: "soft" });
  #bar = element("progress");
  #thumb = element("span", { className: "thumb" });
  #save = element("a", { className: "quiet", hidden: true }, "Download");
  #end = element("button", { type: "button", className: "quiet" });

  constructor(id, name) {
    Object.assign(this, { id, name });
    this.#bar.ariaLabel = `Progress of ${name}`;
    this.#end.onclick = () => this.#finish();
    this.element = element(
      "li",
      {},
      this.#thumb,
      element("div", {}, element("strong", {}, name), this.#said, this.#bar, this.#count),
      this.#save,
      this.#end,
    );
  }

  /** Show how far it is, and ask again while there is more to come. */
  update(job) {
    const open = OPEN.has(job.state);
    this.#job = job;
    this.element.dataset.state = job.state;
    say(this.#said, words(job));
    const frames = job.items.length === 1 ? job.items[0].frames : null;
    const { done, total } = frames ?? job.progress;
    this.#count.textContent = open && frames ? `${done} of ${plural(total, "frame")}` : "";
    this.#bar.hidden = !open;
    this.#bar.max = total;
    if (job.state === "running" && total === 1) this.#bar.removeAttribute("value");
    else this.#bar.value = done;
    this.#end.textContent = open ? "Cancel" : "Delete";
    this.#end.ariaLabel = `${this.#end.textContent} ${this.name}`;
    if (open) setTimeout(() => this.#look(), OFTEN_MS);
    else this.#fetch();
  }

  async #look() {
    if (!rows.has(this.id) || !OPEN.has(this.#job.state)) return;
    try {
      this.update(await ask("GET", `/v1/jobs/${this.id}`));
    } catch (problem) {
      if (problem.code === "not_found") this.#leave();
      else setTimeout(() => this.#look(), 3 * OFTEN_MS);
    }
  }

  /** Get the first result, once. */
  async #fetch() {
    const made = this.#job.items.find((item) => item.result)?.result;
    if (!made?.uri.startsWith("/") || this.#url) return;
    const video = made.media_type.startsWith("video/");
    try {
      this.#url = await result(made.uri, video);
    } catch {
      return; // deleted meanwhile
    }
    const download = nameFor(this.name, made.media_type);
    if (video) this.#play(download);
    else this.#thumb.replaceChildren(element("img", { src: this.#url, alt: "" }));
    Object.assign(this.#save, { href: this.#url, download, hidden: false });
    this.#save.ariaLabel = `Download ${download}`;
  }

  #play(name) {
    const src = `${this.#url}#t=0.001`; // so that a frame is seen before it plays
    const player = element("video", { src, controls: true, playsInline: true });
    Object.assign(player, { preload: "metadata", ariaLabel: name });
    player.onerror = () => player.remove(); // it can be saved all the same
    this.#thumb.hidden = true;
    this.element.append(player);
  }

  /** Cancel it, or take it off the list with all that the server keeps of it. */
  async #finish() {
    const open = OPEN.has(this.#job.state);
    this.#end.disabled = true;
    try {
      const job = await ask("DELETE", `/v1/jobs/${this.id}`);
      if (open) this.update(job);
    } catch {
      if (open) return; // asked again by then
    } finally {
      this.#end.disabled = false;
    }
    if (!open) this.#leave();
  }

  #leave() {
    URL.revokeObjectURL(this.#url);
    this.element.remove();
    rows.delete(this.id);
    remember();
  }
}

keys.addEventListener("change", recall);
recall();
