// The grid of results: pictures stay where they are while distances change, so that moving the slider is calm.
import { h, show } from "./dom.js";
import { strip } from "./strip.js";
import { image, nameOf } from "./tile.js";

const MEANS = {
  itself: "The item searched for", copy: "The same picture, perhaps with something done to it",
  "same kind": "Nearer than nearly all random pairs here",
  unlike: "No nearer than random pairs here", "cannot tell": "Codes this short, or so few items, cannot tell",
};
const copies = new Set(); // of what is searched for: seen by the pictures, which shorter codes and marks do not bring along
const kept = new Map(); // tiles by id, for the pictures in them
let keptOf = "";

export const forget = () => copies.clear();

// What a match is to the query; once seen to be a copy it stays one, whatever codes are compared.
export function gradeOf(match) {
  if (match.itself) return "itself";
  if (copies.has(match.id)) return "copy";
  return match.grade || "cannot tell";
}

export function draw(place, state, info, answer, { onagain, oncompare, onmark, marks }) {
  const of = `${state.collection} ${info.model}`;
  if (of !== keptOf) { kept.clear(); keptOf = of; }
  const grid = place.querySelector("ol.grid") || h("ol", { class: "grid", "aria-label": "Results, nearest first" });
  for (const match of answer.matches) if (match.grade === "copy" && !match.itself) copies.add(match.id);
  const digits = answer.matches.every((one) => Number.isInteger(one.distance)) ? 0 : 2;
  const tiles = answer.matches.map((match) => {
    const tile = kept.get(match.id) || made(state, match, onagain, oncompare, onmark);
    kept.set(match.id, tile);
    fill(tile, match, info, answer, marks, digits);
    return tile.element;
  });
  const same = grid.children.length === tiles.length && tiles.every((tile, i) => grid.children[i] === tile);
  if (!same) show(grid, ...tiles);
  if (grid.parentElement !== place) show(place, grid);
}

function made(state, match, onagain, oncompare, onmark) {
  const item = match.item;
  const name = nameOf(item);
  const distance = h("strong", {});
  const badge = h("span", { class: "badge" });
  const bits = h("div", {});
  const differ = h("span", { class: "small muted number" });
  const mark = (kind, sign, words) => h("button", { type: "button", class: `mark ${kind}`, "aria-pressed": "false", "aria-label": `${words}: ${name}`, title: words, onclick: () => onmark(item.id, kind) }, sign);
  const right = mark("right", "✓", "This is right");
  const wrong = mark("wrong", "✗", "This is wrong");
  const labels = item.labels.length > 0 && h("span", { class: "small muted name" }, item.labels.join(", "));
  const element = h("li", { class: "tile", "data-id": item.id },
    h("button", { class: "show", type: "button", "aria-label": `Search for pictures like ${name}`, onclick: () => onagain(item.id) }, image(state.collection, item)),
    h("div", { class: "tile-words" },
      h("div", { class: "tile-line" }, distance, badge), bits, differ,
      h("span", { class: "name", title: item.name }, name), labels,
      h("div", { class: "tile-actions" }, right, wrong, h("button", { type: "button", class: "compare", "aria-label": `Compare with ${name}`, onclick: () => oncompare(item.id) }, "Compare"))));
  return { element, distance, badge, bits, differ, right, wrong };
}

function fill(tile, match, info, answer, marks, digits) {
  tile.distance.textContent = match.distance.toFixed(digits);
  tile.distance.title = `${(100 * match.share).toFixed(1)} % of the largest distance possible`;
  const said = marks.right.has(match.id) ? "right" : marks.wrong.has(match.id) ? "wrong" : "";
  tile.right.setAttribute("aria-pressed", String(said === "right"));
  tile.wrong.setAttribute("aria-pressed", String(said === "wrong"));
  tile.element.classList.toggle("marked-right", said === "right");
  tile.element.classList.toggle("marked-wrong", said === "wrong");
  if (match.disagree === undefined || match.disagree === null) return; // explained a moment later
  const word = gradeOf(match);
  tile.badge.className = `badge ${word.replace(" ", "-")}`;
  tile.badge.textContent = word;
  tile.badge.title = MEANS[word];
  tile.differ.textContent = `${match.differing_bits} of ${answer.bits} differ`;
  show(tile.bits, strip(info.bit_weights, answer.bits, match.disagree));
}
