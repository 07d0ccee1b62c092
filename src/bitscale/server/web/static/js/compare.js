// Side by side: what was searched for and one result, with every bit in which they differ.
import * as api from "./api.js";
import { at, h, show } from "./dom.js";
import { address, file } from "./query.js";
import { gradeOf } from "./results.js";
import { strip } from "./strip.js";
import { image, nameOf, sharp } from "./tile.js";

export function draw(state, info, answer, onclose) {
  const dialog = at("compare");
  const match = state.compare === null ? null : answer?.matches.find((one) => one.id === state.compare);
  if (!match) { if (dialog.open) dialog.close(); return; }
  const mine = file();
  const left = mine ? h("img", { class: "picture", alt: "The picture searched for", src: address(), onload: (event) => sharp(event.target) })
    : state.query.id !== undefined ? full(state.collection, { id: state.query.id, has_picture: match.item.has_picture }, "The item searched for")
      : h("div", { class: "no-picture" }, state.query.text ? "words" : "a shared code");
  const facts = [["Distance", match.distance.toFixed(Number.isInteger(match.distance) ? 0 : 3)], ["Of the largest possible", `${(100 * match.share).toFixed(1)} %`],
    ["Differing bits", match.differing_bits === null || match.differing_bits === undefined ? "–" : `${match.differing_bits} of ${answer.bits}`], ["Grade", gradeOf(match)],
    ...(match.item.labels.length ? [["Labels", match.item.labels.join(", ")]] : []),
    ...Object.entries(match.item.metadata).slice(0, 6).map(([name, value]) => [name, String(value)])];
  const plain = info.bit_weights.every((one) => one === info.bit_weights[0]);
  const heaviest = (match.disagree || []).slice(0, 12).map((bit) => (plain ? bit + 1 : `${bit + 1} (${info.bit_weights[bit].toFixed(2)})`)).join(", ");
  const order = plain ? "in order" : "heaviest first, with their weights";
  show(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "compare-title" }, "Compare"), h("button", { type: "button", class: "quiet", id: "compare-close", onclick: () => dialog.close() }, "Close")),
    h("div", { class: "pair" }, h("figure", {}, left, h("figcaption", { class: "of-query" }, at("asked-name")?.textContent || "")),
      h("figure", {}, full(state.collection, match.item, `The result ${nameOf(match.item)}`), h("figcaption", {}, nameOf(match.item)))),
    h("dl", { class: "facts bits-table" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("div", { class: "bits-table" }, strip(info.bit_weights, answer.bits, match.disagree || [], 34),
      h("p", { class: "small muted" }, heaviest ? `Bits that differ, ${order}: ${heaviest}${(match.disagree || []).length > 12 ? " and more" : ""}.` : "No bit differs.")));
  dialog.onclose = onclose;
  if (!dialog.open) dialog.showModal();
}

function full(collection, item, words) {
  if (!item.has_picture) return h("div", { class: "no-picture", "data-words": "no picture" });
  const shown = h("img", { class: "picture", alt: words, src: api.picture(collection, item.id), onload: () => sharp(shown), onerror: () => { shown.onerror = null; shown.replaceWith(image(collection, item, 512)); } });
  return shown;
}
