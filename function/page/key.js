/** The key that this tab says who calls with, where the server wants one. */

const NAME = "ember-key";
const panel = document.getElementById("access");
const field = document.getElementById("key");

/** Fires `change` when there is another key. */
export const keys = new EventTarget();

field.value = sessionStorage.getItem(NAME) ?? "";
field.onchange = () => {
  const key = field.value.trim();
  if (key) sessionStorage.setItem(NAME, key);
  else sessionStorage.removeItem(NAME);
  panel.open = false;
  keys.dispatchEvent(new Event("change"));
};

/** The headers that say who calls. @returns {Object} */
export function credentials() {
  const key = sessionStorage.getItem(NAME);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Let the user give another key. */
export function ask() {
  panel.open = true;
  field.focus();
  field.select();
}
