/** The two views of the page: swapping, and checking a file (/#verify). */

const VIEWS = {
  "": { section: document.getElementById("swapping"), title: "Ember: swap a face" },
  "#verify": { section: document.getElementById("verify"), title: "Ember: check a file" },
};
const links = document.querySelectorAll("#views a");

window.addEventListener("hashchange", show);
show();

/** Whether files are being checked. @returns {boolean} */
export function checking() {
  return location.hash === "#verify";
}

function show() {
  const hash = checking() ? "#verify" : "";
  for (const [name, { section, title }] of Object.entries(VIEWS)) {
    section.hidden = name !== hash;
    if (name === hash) document.title = title;
  }
  for (const link of links) link.ariaCurrent = link.hash === hash ? "page" : null;
}
