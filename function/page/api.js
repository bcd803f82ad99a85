/** The replica over HTTP: where it is in its life, and calls that wait for it and fail in words. */

import { credentials } from "./key.js";

const WAKING = new Set(["cold", "starting", "fetching", "loading", "warming"]);
const LEAVING = new Set(["draining", "failed"]);
const OFTEN_MS = 500;
const RARELY_MS = 2000;
/** Without an answer for so long, nobody is there yet; and nobody will come. */
const COLD_MS = 1500;
const PATIENCE_MS = 300_000;
/** After so long a replica may have gone to sleep. Asking on would keep it awake for nobody. */
const IDLE_MS = 60_000;
/** Where the server is, if this is a copy of the page elsewhere. */
const SERVER = document.querySelector("meta[name=ember-api]")?.content ?? "";

/** A failure to show: an RFC 9457 problem of the server, or one made here for the network. */
export class Problem extends Error {
  /** @param {Object} members `title`, and where known `detail`, `hint`, `code`, `request_id` */
  constructor(members) {
    super(members.title);
    Object.assign(this, members);
  }
}

/**
 * The replica that answers. Asking wakes one that sleeps, so it is asked at once and often until it
 * is ready, and then only when somebody does something. Each answer fires `change`.
 */
export class Replica extends EventTarget {
  phase = "unknown";
  /** What executes the models. @type {string[]} */
  providers = [];
  /** What the operator has decided: the gate, consent, sources, the label. @type {Object} */
  trust = {};
  /** How its start went so far. @type {Array<Object>} */
  spans = [];
  /** How long it was waited for, where it was. @type {?number} */
  waited_ms = null;
  #waits = null;
  #asking = null;
  #timer;

  /** Whether the replica will be ready by itself, or may be. */
  get warming() {
    return WAKING.has(this.phase);
  }

  /** Whether the replica will never be ready again. */
  get leaving() {
    return LEAVING.has(this.phase);
  }

  /** Ask again if it may have gone to sleep: somebody is about to need it. */
  intend() {
    if (this.phase === "idle") this.check();
  }

  /** Ask now, and keep asking until it is ready. */
  check() {
    clearTimeout(this.#timer);
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  /** Resolves once the replica is not warming any more; rejects when `signal` aborts. */
  async warm(signal) {
    while (this.warming || this.phase === "unknown") await pause(OFTEN_MS, signal);
  }

  async #ask() {
    this.#waits ??= performance.now();
    const waited = () => performance.now() - this.#waits;
    const missed = setTimeout(() => {
      if (["unknown", "idle", "ready"].includes(this.phase)) this.#enter("cold");
    }, COLD_MS);
    const before = this.phase;
    let phase = waited() < PATIENCE_MS ? "cold" : "unreachable";
    try {
      const { ready, models, trust = {}, ...state } = await get("/readyz");
      if (!ready || before !== "ready") this.spans = (await get("/warmup")).spans ?? [];
      this.trust = trust;
      const providers = Object.values(models).map((model) => model.provider);
      this.providers = [...new Set(providers.filter(Boolean))];
      phase = state.phase;
    } catch {
      // Nobody is there, or something in between says so in its own words.
    }
    clearTimeout(missed);
    if (phase === "ready") {
      if (WAKING.has(this.phase)) this.waited_ms = waited();
      this.#waits = null;
      this.#timer = setTimeout(() => this.#enter("idle"), IDLE_MS);
    } else {
      const pause_ms = phase === "cold" || phase === "unreachable" ? RARELY_MS : OFTEN_MS;
      this.#timer = setTimeout(() => this.check(), pause_ms);
    }
    this.#enter(phase);
  }

  #enter(phase) {
    this.phase = phase;
    this.dispatchEvent(new Event("change"));
  }
}

/** What the server says, ready or not. */
const get = async (path) => (await fetch(SERVER + path, { cache: "no-store" })).json();

/**
 * Send a form and read the JSON answer. A replica that is not ready yet is waited for.
 * @param {string} path
 * @param {FormData} form
 * @param {Replica} replica
 * @param {AbortSignal} signal
 * @param {string} method
 * @returns {Promise<Object>} the answer, with `wall_ms` as measured here
 * @throws {Problem} for every failure; when `signal` aborts, its reason
 */
export async function post(path, form, replica, signal, method = "POST") {
  for (;;) {
    await replica.warm(signal);
    const began = performance.now();
    const { response, body } = await exchange(method, path, { body: form, signal }).catch((error) => {
      if (!signal.aborted) replica.check();
      throw error;
    });
    if (response.ok) return { ...body, wall_ms: performance.now() - began };
    await replica.check();
    if (body.code !== "not_ready" || replica.leaving) throw new Problem(body);
    await pause(1000 * (Number(response.headers.get("Retry-After")) || 1), signal);
  }
}

/**
 * Ask for something that has no body, and read the JSON answer.
 * @param {string} method
 * @param {string} path
 * @returns {Promise<Object>}
 * @throws {Problem} for every failure
 */
export async function ask(method, path) {
  const { response, body } = await exchange(method, path, {});
  if (response.ok) return body;
  throw new Problem(body);
}

/**
 * A result that the server keeps, as something to show and to save. A player asks the server itself
 * for the parts of a video that it needs, where that needs no key.
 * @param {string} path
 * @param {boolean} video
 * @returns {Promise<string>} a URL; one of a blob is to be revoked
 */
export async function result(path, video) {
  const headers = credentials();
  if (video && !SERVER && !headers.Authorization) return path;
  const response = await fetch(SERVER + path, { headers });
  if (!response.ok) throw new Problem(await response.json());
  return URL.createObjectURL(await response.blob());
}

async function exchange(method, path, options) {
  let response;
  try {
    const headers = { Accept: "application/json", ...credentials() };
    response = await fetch(SERVER + path, { method, headers, ...options });
    return { response, body: await response.json() };
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (response && error instanceof SyntaxError) {
      throw new Problem({
        title: "The answer cannot be understood",
        detail: `Something between here and the replica answered with status ${response.status}.`,
        hint: "Try again in a moment.",
        request_id: response.headers.get("Ember-Request-Id"),
      });
    }
    throw new Problem({
      title: "The server cannot be reached",
      detail: "The connection broke before an answer came.",
      hint: "Check the network and try again; a very large photo may also have been cut off.",
    });
  }
}

/** Resolves after `ms`; rejects when `signal` aborts. */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
  });
}
