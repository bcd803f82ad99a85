/** One photo on a stage: its file, its preview, and the faces that the replica finds on it. */

import { post } from "./api.js";
import { element } from "./dom.js";

const VIDEO = /\.(mp4|m4v|mov|webm|mkv)$/i;

/** Fires `change` when its faces or the selection change, `remove` when it leaves its stage. */
export class Photo extends EventTarget {
  /** null until the replica has answered. @type {?Array<Object>} */
  faces = null;
  /** Why the photo cannot be used. @type {?import("./api.js").Problem} */
  problem = null;
  #abort = new AbortController();
  #frame = element("div", { className: "frame" });
  #marks = [];
  #replica;
  #url;

  /**
   * @param {File} file
   * @param {import("./api.js").Replica} replica
   * @param {boolean} selectable whether each face is a toggle; else the largest is the one used
   */
  constructor(file, replica, selectable) {
    super();
    this.file = file;
    this.selectable = selectable;
    /** Whether it is a video, which only a job changes, and in which all faces are replaced. */
    this.video = selectable && (file.type.startsWith("video/") || VIDEO.test(file.name));
    this.#url = URL.createObjectURL(file);
    const preview = this.video ? this.#film() : this.#image();
    preview.onerror = () => {
      preview.replaceWith(element("p", {}, "No preview of this kind of file"));
      this.#frame.classList.add("blind");
    };
    this.#frame.append(preview);
    const remove = element("button", { type: "button", className: "remove" }, "×");
    remove.ariaLabel = `Remove ${file.name}`;
    remove.onclick = () => this.remove();
    this.element = element("div", { className: "photo" }, this.#frame, remove);
    this.#replica = replica;
    if (!this.video) this.#look();
  }

  /** Look again for faces, after that has failed. */
  again() {
    this.problem = null;
    this.element.classList.remove("broken");
    this.#look();
    this.dispatchEvent(new Event("change"));
  }

  /** The indices of the selected faces. @returns {number[]} */
  get selected() {
    const faces = this.faces ?? [];
    return faces.filter((_, place) => pressed(this.#marks[place])).map((face) => face.index);
  }

  /** The selection as the API's `faces`. @returns {string} */
  get selection() {
    const all = this.faces === null || this.selected.length === this.faces.length;
    return all ? "all" : `index:${this.selected.join(",")}`;
  }

  /** Take the photo off its stage and free what it holds. */
  remove() {
    this.#abort.abort();
    URL.revokeObjectURL(this.#url);
    this.element.remove();
    this.dispatchEvent(new Event("remove"));
  }

  #image() {
    const image = element("img", { src: this.#url, alt: this.file.name, draggable: false });
    image.onload = () => this.#shape(image.naturalWidth, image.naturalHeight);
    return image;
  }

  #film() {
    const film = element("video", { src: this.#url, controls: true, muted: true, playsInline: true });
    film.ariaLabel = this.file.name;
    film.onloadedmetadata = () => this.#shape(film.videoWidth, film.videoHeight);
    return film;
  }

  async #look() {
    const form = new FormData();
    form.append("image", this.file);
    try {
      const answer = await post("/v1/faces", form, this.#replica, this.#abort.signal);
      this.#shape(answer.width, answer.height);
      this.#mark(answer);
      this.faces = answer.faces;
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.problem = Object.assign(error, { file: this.file.name });
      this.element.classList.add("broken");
    }
    this.dispatchEvent(new Event("change"));
  }

  #shape(width, height) {
    this.#frame.style.setProperty("--ratio", width / height);
  }

  #mark({ faces, width, height }) {
    const areas = faces.map(({ box }) => (box.right - box.left) * (box.bottom - box.top));
    const largest = areas.indexOf(Math.max(...areas));
    const percent = (part, whole) => `${(100 * part) / whole}%`;
    this.#marks = faces.map(({ box }, place) => {
      const mark = this.selectable
        ? this.#toggle(`Face ${place + 1} of ${faces.length}`)
        : element("span", { className: place === largest ? "face" : "face unused" });
      mark.dataset.number = place + 1;
      mark.style.left = percent(box.left, width);
      mark.style.top = percent(box.top, height);
      mark.style.width = percent(box.right - box.left, width);
      mark.style.height = percent(box.bottom - box.top, height);
      return mark;
    });
    this.#frame.append(...this.#marks);
  }

  #toggle(label) {
    const button = element("button", { type: "button", className: "face", ariaLabel: label });
    button.ariaPressed = "true";
    button.onclick = () => {
      button.ariaPressed = String(!pressed(button));
      this.dispatchEvent(new Event("change"));
    };
    return button;
  }
}

const pressed = (button) => button.ariaPressed === "true";
