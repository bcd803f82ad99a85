/** The replica over HTTP: where it is in its life, and calls that wait for it and fail in words. */

import { credentials } from "./key.js";

const WARMING = new Set(["starting", "fetching", "loading", "warming"]);
const LEAVING = new Set(["draining", "failed"]);
const OFTEN_MS = 1000;
const RARELY_MS = 30_000;

/** A failure to show: an RFC 9457 problem of the server, or one made here for the network. */
export class Problem extends Error {
  /** @param {Object} members `title`, and where known `detail`, `hint`, `code`, `request_id` */
  constructor(members) {
    super(members.title);
    Object.assign(this, members);
  }
}

/** Asks /readyz every second until the replica is ready, then rarely; each time fires `change`. */
export class Replica extends EventTarget {
  phase = "unknown";
  /** What executes the models. @type {string[]} */
  providers = [];
  /** What the operator has decided: the gate, consent, sources, the label. @type {Object} */
  trust = {};
  #timer;

  /** Whether the replica will be ready by itself. */
  get warming() {
    return WARMING.has(this.phase);
  }

  /** Whether the replica will never be ready again. */
  get leaving() {
    return LEAVING.has(this.phase);
  }

  /** Ask now, and keep asking. */
  async check() {
    let ready = false;
    try {
      const state = await (await fetch("/readyz", { cache: "no-store" })).json();
      ready = state.ready;
      this.phase = state.phase;
      this.trust = state.trust ?? {};
      const models = Object.values(state.models);
      this.providers = [...new Set(models.map((model) => model.provider).filter(Boolean))];
    } catch {
      this.phase = "unreachable";
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.check(), ready ? RARELY_MS : OFTEN_MS);
    this.dispatchEvent(new Event("change"));
  }

  /** Resolves once the replica is not warming any more; rejects when `signal` aborts. */
  async warm(signal) {
    while (this.warming) await pause(OFTEN_MS, signal);
  }
}

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
    const { response, body } = await exchange(method, path, { body: form, signal });
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

/** A photo that the server keeps. @param {string} path @returns {Promise<Blob>} */
export async function photo(path) {
  const response = await fetch(path, { headers: credentials() });
  if (!response.ok) throw new Problem(await response.json());
  return response.blob();
}

async function exchange(method, path, options) {
  let response;
  try {
    const headers = { Accept: "application/json", ...credentials() };
    response = await fetch(path, { method, headers, ...options });
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
