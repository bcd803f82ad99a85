/** One row of what a file carries, as the result and the check show it. */

import { element } from "./dom.js";

/**
 * @param {string} name of the mark
 * @param {*} state whether it is there; "bad" where it does not hold, "doubt" where nobody vouches
 * @param {...(Node|string)} texts what is to say of it
 * @returns {HTMLLIElement}
 */
export function finding(name, state, ...texts) {
  const row = element("li", {}, element("strong", {}, name), element("span", {}, ...texts));
  row.dataset.state = ["bad", "doubt"].includes(state) ? state : state ? "there" : "none";
  return row;
}
