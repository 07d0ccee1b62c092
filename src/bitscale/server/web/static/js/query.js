// What to search for: a picture that is dropped, pasted or chosen, an item that was clicked, or words.
import * as api from "./api.js";
import { at, h, show, svg } from "./dom.js";
import { image, nameOf, sharp } from "./tile.js";

let chosen = null; // the file, and an address to show it by; never sent anywhere but to this service

export const file = () => chosen?.file || null;
export const address = () => chosen?.address;

export function forget() {
  if (chosen) URL.revokeObjectURL(chosen.address);
  chosen = null;
}

export function listen(onfile, onother) {
  const take = (given) => {
    const files = [...(given || [])];
    const picture = files.find((one) => one.type.startsWith("image/") || /\.(heic|heif|avif|ppm)$/i.test(one.name)); // not every system knows these
    if (!picture) { if (files.length) onother(files[0].name); return false; }
    forget();
    chosen = { file: picture, address: URL.createObjectURL(picture) };
    onfile(picture);
    return true;
  };
  addEventListener("paste", (event) => { if (take(event.clipboardData?.files)) event.preventDefault(); });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    if (event.dataTransfer?.types.includes("Files")) at("drop-here").hidden = false; // not a text that is dragged about
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) at("drop-here").hidden = true; });
  addEventListener("drop", (event) => { event.preventDefault(); at("drop-here").hidden = true; take(event.dataTransfer?.files); });
  return take;
}

function words(text, onwords) {
  const field = h("input", { type: "text", id: "words", maxlength: 1000, value: text || "", "aria-label": "Search by words", placeholder: "red car at night" });
  const send = (event) => { event.preventDefault(); if (field.value.trim()) onwords(field.value.trim()); };
  return h("form", { class: "row", onsubmit: send }, field, h("button", { type: "submit", id: "ask-words" }, "Search"));
}

export function draw(place, state, info, take, onclear, onwords) {
  const input = h("input", { type: "file", accept: "image/*", class: "hidden", id: "file", tabindex: "-1", "aria-hidden": "true", onchange: (event) => take(event.target.files) });
  const choose = (words, kind) => h("button", { type: "button", class: kind, id: "choose", onclick: () => input.click() }, words);
  if (!state.query && !chosen) {
    show(place, h("h2", {}, info.takes_words ? "Search by picture or words" : "Search by picture"),
      info.takes_words && words("", onwords),
      info.takes_pictures
        ? h("div", { class: "drop" }, icon(), h("p", {}, "Drop a picture anywhere, or paste one"), choose("Choose a picture", "main"), input)
        : h("p", { class: "muted" }, "This collection's model takes vectors, not pictures. Click an item to search for others like it."));
    return;
  }
  const ofItem = !chosen && state.query.id !== undefined;
  const preview = chosen
    ? h("img", { class: "picture", src: chosen.address, alt: "The picture searched for", onload: (event) => sharp(event.target) })
    : h("div", { class: "no-picture" }, ofItem ? "" : state.query.text ? "words" : "a shared code");
  const name = h("strong", { id: "asked-name" }, chosen ? chosen.file.name || "Pasted picture" : ofItem ? `item ${state.query.id}` : state.query.text || "A code from a link");
  show(place, h("div", { class: "card-head" }, h("h2", {}, "Searching for"), h("button", { type: "button", class: "quiet small", id: "clear", onclick: onclear }, "Clear")),
    h("div", { class: "asked" }, preview, h("div", { class: "asked-words" }, name, info.takes_pictures && choose("Another picture", "small"), input)),
    info.takes_words && words(chosen ? "" : state.query?.text, onwords));
  if (!ofItem) return;
  api.item(state.collection, state.query.id).then((item) => {
    name.textContent = nameOf(item);
    for (const other of document.querySelectorAll("dialog[open] .of-query")) other.textContent = name.textContent;
    preview.replaceWith(image(state.collection, item));
  }, () => {}); // that it is gone is told by the search
}

function icon() {
  return svg("svg", { viewBox: "0 0 24 24", width: 36, height: 36, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "aria-hidden": "true" },
    svg("rect", { x: 3, y: 4, width: 18, height: 16, rx: 3 }), svg("circle", { cx: 9, cy: 10, r: 1.6 }), svg("path", { d: "M4 18l5-5 4 4 3-3 4 4" }));
}
