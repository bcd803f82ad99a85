/** A place for photos: drop, paste, choose, or take a sample. */

import { say } from "./dom.js";
import { Photo } from "./photo.js";
import { plural } from "./words.js";

/** Fires `change` whenever its photos, their faces or the selection change. */
export class Zone extends EventTarget {
  /** @type {Photo[]} */
  photos = [];
  #replica;

  /** @param {HTMLElement} element @param {import("./api.js").Replica} replica */
  constructor(element, replica) {
    super();
    this.element = element;
    this.limit = Number(element.dataset.limit);
    this.#replica = replica;
    const input = element.querySelector("input[type=file]");
    input.onchange = () => {
      this.add([...input.files]);
      input.value = ""; // so that choosing the same file again is a change
    };
    for (const button of element.querySelectorAll(".choose")) button.onclick = () => input.click();
    for (const button of element.querySelectorAll(".sample")) {
      button.onclick = () => this.load(button.querySelector("img").src);
    }
    const over = (event) => {
      const leaves = event.type === "dragleave" && !element.contains(event.relatedTarget);
      const { types } = event.dataTransfer;
      const photo = types.includes("Files") || types.includes("text/uri-list");
      element.classList.toggle("over", photo && !leaves && event.type !== "drop");
    };
    for (const type of ["dragover", "dragleave", "drop"]) element.addEventListener(type, over);
    replica.addEventListener("change", () => this.#tell());
    this.#change();
  }

  /** Why the first photo that cannot be used cannot. @returns {?import("./api.js").Problem} */
  get problem() {
    return this.photos.find((photo) => photo.problem)?.problem ?? null;
  }

  /** What keeps these photos from being swapped, or null. @returns {?string} */
  get obstacle() {
    const [photo] = this.photos;
    const name = ({ file }) => (this.photos.length > 1 ? file.name : "This photo");
    const broken = this.photos.find(({ problem }) => problem);
    if (broken) return `${name(broken)} cannot be used.`;
    const faceless = this.photos.find(({ faces }) => faces?.length === 0);
    if (faceless) return `${name(faceless)} shows no face.`;
    const none = photo?.selectable && photo.faces && photo.selected.length === 0;
    return none ? "Select at least one face." : null;
  }

  /** Put files on the stage. A zone for one photo replaces it; a full zone ignores the rest. */
  add(files) {
    if (files.length && this.limit === 1) this.photos[0]?.remove();
    for (const file of files.slice(0, this.limit - this.photos.length)) {
      const photo = new Photo(file, this.#replica, this.limit === 1);
      photo.addEventListener("change", () => this.#change());
      photo.addEventListener("remove", () => this.#drop(photo));
      this.photos.push(photo);
      this.element.querySelector(".stage").append(photo.element);
    }
    this.#change();
  }

  /** Put a photo of this page itself on the stage, as the samples are. @param {string} url */
  async load(url) {
    try {
      const blob = await (await fetch(url)).blob();
      this.add([new File([blob], url.replace(/.*\//, ""), { type: blob.type })]);
    } catch {
      this.#replica.check(); // which says what is wrong
    }
  }

  #drop(photo) {
    this.photos = this.photos.filter((other) => other !== photo);
    this.#change();
    // Its remove button had the focus; without a new place for it the keyboard starts over.
    if (document.activeElement === document.body) {
      this.element.querySelector(".choose:enabled:not([hidden])").focus({ preventScroll: true });
    }
  }

  #change() {
    const count = this.photos.length;
    this.element.querySelector(".stage").dataset.count = count;
    this.element.querySelector(".empty").hidden = count > 0;
    const full = this.limit > 1 && count === this.limit;
    this.element.querySelector(".more").disabled = count === 0 || full;
    this.#tell();
    this.dispatchEvent(new Event("change"));
  }

  #tell() {
    say(this.element.querySelector(".note"), this.#note());
  }

  #note() {
    const count = this.photos.length;
    if (!count) return "";
    if (this.photos[0].video) return "A video becomes a job. All faces in it are replaced.";
    if (this.photos.some((photo) => !photo.faces && !photo.problem)) {
      return this.#replica.warming ? "Waiting for the replica…" : "Looking for faces…";
    }
    if (this.problem || this.photos.some((photo) => !photo.faces.length)) return this.obstacle;
    const faces = this.photos.flatMap((photo) => photo.faces).length;
    const [{ selectable, selected }] = this.photos;
    if (selectable) return `${plural(faces, "face")}, ${selected.length} selected`;
    const spare = faces > count ? "; the largest of a photo is used" : "";
    return `${plural(count, "photo")}, ${plural(faces, "face")}${spare}`;
  }
}
