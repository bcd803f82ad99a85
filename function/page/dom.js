/** Two small helpers for the document. */

/**
 * A new element.
 * @param {string} tag
 * @param {Object} properties to assign; those with a hyphen (`aria-label`) are set as attributes
 * @param {...(Node|string)} children
 */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** Set a live region's text; setting the same again would be read out again. */
export function say(region, text) {
  if (region.textContent !== text) region.textContent = text;
}
