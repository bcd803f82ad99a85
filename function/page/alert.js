/** A problem, shown where it belongs: what happened, what can be done, and whom to ask. */

import { Problem } from "./api.js";
import { element } from "./dom.js";
import { ask } from "./key.js";
import { refusal } from "./words.js";

/** One place for problems. It takes the focus only when asked to. */
export class Alert {
  #element;
  /** The problem that is shown. @type {?Error} */
  #shown = null;

  /** @param {HTMLElement} element a live region that can take the focus */
  constructor(element) {
    this.#element = element;
  }

  /** Show a problem, or clear the last one. @param {?Error} problem */
  show(problem) {
    if (problem === this.#shown) return; // it would be read out again
    this.#shown = problem;
    this.#element.hidden = problem === null;
    if (problem === null) return;
    if (!(problem instanceof Problem)) console.error(problem);
    if (problem.code === "unauthenticated") ask();
    const kind = refusal(problem.code);
    this.#element.classList.toggle("gentle", kind !== null);
    const { title = "The page has failed", code, detail, hint, file, request_id: id } = problem;
    // How a program states consent is of no use here: the page asks for it.
    const texts = [detail, code === "consent_required" ? null : hint, kind].filter(Boolean);
    const whom = kind ? "To have it looked at, tell whoever runs this server: request " : "Request ";
    this.#element.replaceChildren(
      element("strong", {}, file ? `${title}: ${file}` : title),
      ...texts.map((text) => element("p", {}, text)),
      ...(id ? [element("p", { className: "soft" }, whom, element("code", {}, id))] : []),
    );
  }

  /** Lead the keyboard and screen readers to the problem, unless a key is being asked for. */
  focus() {
    if (this.#shown && this.#shown.code !== "unauthenticated") this.#element.focus();
  }
}
