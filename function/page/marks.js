/** What a result says of itself, behind the small "i" over its picture. */

import { element } from "./dom.js";
import { finding } from "./findings.js";
import { check } from "./verify.js";
import { origin, places } from "./words.js";

const box = document.querySelector("#result .marks");
const [opener, panel] = [box.querySelector("button"), box.querySelector("div")];
/** The result. @type {?File} */
let file = null;

opener.onclick = () => open(panel.hidden);
box.onkeydown = (event) => {
  if (event.key !== "Escape" || panel.hidden) return;
  open(false);
  opener.focus();
};
document.addEventListener("pointerdown", ({ target }) => box.contains(target) || open(false));
panel.querySelector(".quiet").onclick = () => {
  open(false);
  check(file);
};

/**
 * Show what a result carries.
 * @param {Object} marks the member `marks` of an answer
 * @param {File} result
 */
export function carry(marks, result) {
  file = result;
  open(false);
  panel.querySelector("ul").replaceChildren(...rows(marks));
}

function rows({ metadata, source_type: type, watermark, signature, label }) {
  const mark = watermark && [
    `Invisible, ${places(watermark)}: `,
    element("code", {}, watermark.payload),
  ];
  return [
    finding("Metadata", metadata, metadata ? `Say that it is a face swap, ${origin(type)}.` : "None."),
    finding("Watermark", watermark, ...(mark ?? ["None."])),
    finding("Signature", signature, signature ? `By ${signature.by} (C2PA).` : "None."),
    finding("Label", label, label ? `“${label}”, on the picture.` : "None."),
  ];
}

function open(yes) {
  panel.hidden = !yes;
  opener.ariaExpanded = String(yes);
}
