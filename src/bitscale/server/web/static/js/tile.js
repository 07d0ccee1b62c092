// One picture in a grid, with what is known of it.
import * as api from "./api.js";
import { h } from "./dom.js";

export function image(collection, item, side = 256) {
  if (!item.has_picture) return h("div", { class: "no-picture", "data-words": "no picture" });
  const shown = h("img", {
    class: "picture", alt: "", loading: "lazy", decoding: "async", src: api.thumbnail(collection, item.id, side),
    onerror: () => shown.replaceWith(h("div", { class: "no-picture", "data-words": "cannot be shown" })),
    onload: () => sharp(shown),
  });
  return shown;
}

// Small pictures show their pixels: blurred they would look like bad copies.
export const sharp = (shown) => shown.classList.toggle("pixels", shown.naturalWidth < 64);

export const nameOf = (item) => (item.name ? item.name.split("/").pop() : `item ${item.id}`);

export function plainTile(collection, item, { onshow, badge, words } = {}) {
  const labels = item.labels?.length ? item.labels.join(", ") : "";
  return h("li", { class: "tile", "data-id": item.id },
    onshow
      ? h("button", { class: "show", type: "button", "aria-label": `Search for pictures like ${nameOf(item)}`, onclick: onshow }, image(collection, item))
      : image(collection, item),
    h("div", { class: "tile-words" },
      h("div", { class: "tile-line" }, h("span", { class: "name", title: item.name }, nameOf(item)), badge && h("span", { class: `badge ${badge}` }, badge)),
      (labels || words) && h("span", { class: "small muted" }, [labels, words].filter(Boolean).join(" · "))));
}

export const empty = (collection) => h("div", { class: "notice" }, h("h2", {}, "This collection is empty"),
  h("p", { class: "muted" }, "Add pictures on the command line: ", h("code", {}, `bitscale add ${collection}.bsc FOLDER`)));

export const nothingFits = (onclear) => h("div", { class: "notice" }, h("h2", {}, "No item fits these filters"),
  h("p", { class: "muted" }, "All of them must hold."), h("button", { type: "button", onclick: onclear }, "Clear filters"));

export function waiting(n) {
  return h("ul", { class: "grid", "aria-hidden": "true" }, Array.from({ length: n }, () =>
    h("li", { class: "tile waiting" }, h("div", { class: "picture-place" }), h("div", { class: "tile-words" }, h("div", { class: "word-place" })))));
}
