// Marks on results: what is learned from them at once, and those that are kept.
import * as api from "./api.js";
import { count, h, problem, show } from "./dom.js";
import { file } from "./query.js";

let shownMarks = 6; // of those kept, newest first

export const marks = { right: new Set(), wrong: new Set() };
export const marked = () => marks.right.size + marks.wrong.size;

export function set(id, kind) {
  const had = marks[kind].has(id);
  marks.right.delete(id);
  marks.wrong.delete(id);
  if (!had) marks[kind].add(id);
}

export function clear() { marks.right.clear(); marks.wrong.clear(); }

export const said = (query, bits) => ({ ...query, bits, right: [...marks.right], wrong: [...marks.wrong] });

export async function draw(place, state, info, may, { onclear, onkept, alive }) {
  const kept = await api.marks(state.collection).then((told) => told.marks, () => []);
  if (!alive()) return;
  place.hidden = !marked() && !kept.length;
  const own = file();
  const picture = h("input", { type: "checkbox", id: "keep-picture" });
  const keep = async () => {
    try {
      const body = said(state.query, state.bits || info.n_bits);
      if (own && picture.checked) body.picture = await base64(own);
      await api.mark(state.collection, body);
      problem(null);
      onkept();
    } catch (error) { problem(error); }
  };
  const back = async (id) => {
    try { await api.takeBack(state.collection, id); problem(null); } catch (error) { problem(error); }
    draw(place, state, info, may, { onclear, onkept, alive });
  };
  show(place, h("h2", {}, "Marks"),
    marked() > 0 && [h("p", { class: "small" }, `Learned from ${count(marks.right.size, "right result")} and ${count(marks.wrong.size, "wrong one")}. The same index answers.`),
      may && own && h("label", { class: "check small" }, picture, "Keep my picture with them"),
      h("div", { class: "buttons" }, may && h("button", { type: "button", class: "main", id: "keep-marks", onclick: keep }, "Keep marks"), h("button", { type: "button", id: "clear-marks", onclick: onclear }, "Undo"))],
    kept.length > 0 && [h("p", { class: "small muted" }, `${count(kept.length, "mark")} kept in this collection`, info.fine_tunes && [", for ", h("code", {}, "bitscale train --from-feedback")], "."),
      h("ul", { class: "marks" }, kept.slice(-shownMarks).reverse().map((one) => h("li", {}, h("span", { class: "small" }, `${one.item === null ? "A picture" : `Item ${one.item}`}: ${one.right.length} right, ${one.wrong.length} wrong`),
        may && h("button", { type: "button", class: "quiet small", "aria-label": `Take back mark ${one.id}`, onclick: () => back(one.id) }, "Take back")))),
      kept.length > shownMarks && h("button", { type: "button", class: "small", id: "all-marks", onclick: () => { shownMarks = kept.length; draw(place, state, info, may, { onclear, onkept, alive }); } }, "Show all")]);
}

function base64(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",")[1]);
    reader.onerror = () => failed(new Error("The picture cannot be read."));
    reader.readAsDataURL(blob);
  });
}
