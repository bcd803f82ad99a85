/** Who states that the person on the source photo agrees: asked once, kept in this tab only. */

import { element } from "./dom.js";

const NAME = "ember-consent";
/** What a server may want, and the part of the form that is for it. */
const WAYS = new Set(["stated", "signed"]);

const dialog = document.getElementById("consent");
const form = dialog.querySelector("form");
const why = dialog.querySelector(".why");
const told = document.getElementById("agreed");

form.onsubmit = (event) => {
  event.preventDefault();
  const { name, token } = form.elements;
  const who = name.value.trim();
  const statement = name.disabled
    ? { text: token.value.trim(), who: "A signed statement" }
    : { text: `${who} states that the person on the source photo agrees to this swap.`, who };
  sessionStorage.setItem(NAME, JSON.stringify(statement));
  dialog.close("given");
};
form.querySelector(".quiet").onclick = () => dialog.close();
told.querySelector("button").onclick = () => forget();
tell();

/** Whether the server wants a statement that this tab does not have. @param {string} way */
export const missing = (way) => WAYS.has(way) && !kept();

/** The statement as the API's `consent`, or null. @returns {?string} */
export const statement = () => kept()?.text ?? null;

/** Take the statement back. */
export function forget() {
  sessionStorage.removeItem(NAME);
  tell();
}

/**
 * Ask for a statement.
 * @param {string} way what the server wants: "stated" or "signed"
 * @param {?import("./api.js").Problem} refused why the last one is not enough
 * @returns {Promise<boolean>} whether one was given
 */
export function ask(way, refused = null) {
  for (const part of form.querySelectorAll("[data-way]")) {
    const wanted = part.dataset.way === (WAYS.has(way) ? way : "stated");
    part.hidden = !wanted;
    for (const field of part.querySelectorAll("input, textarea")) field.disabled = !wanted;
  }
  form.elements.agrees.checked = false;
  why.replaceChildren(...(refused ? [element("p", {}, refused.detail)] : []));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const end = () => {
      tell();
      resolve(dialog.returnValue === "given");
    };
    dialog.addEventListener("close", end, { once: true });
  });
}

function kept() {
  return JSON.parse(sessionStorage.getItem(NAME) ?? "null");
}

/** Say beside the button whose statement goes with each swap. */
function tell() {
  const statement = kept();
  told.hidden = statement === null;
  told.querySelector("span").textContent = statement
    ? `${statement.who}: the person on the source photo agrees.`
    : "";
}
