// Filters by label and metadata: what there is to choose from, and conditions written out.
import { count, h, show } from "./dom.js";

const MOST = 12;

export function draw(place, facets, where, onchange) {
  place.hidden = false;
  const add = (condition) => { if (condition && !where.includes(condition)) onchange([...where, condition]); };
  const without = (condition) => onchange(where.filter((one) => one !== condition));
  const chip = (value, condition) => h("button", {
    type: "button", class: "chip", "aria-pressed": where.includes(condition) ? "true" : "false",
    onclick: () => (where.includes(condition) ? without(condition) : add(condition)),
  }, value);
  const offered = new Set((facets?.labels || []).slice(0, MOST).map((one) => `label=${one.value}`));
  const own = h("input", { type: "text", id: "condition", placeholder: "year>=2020", autocomplete: "off", "aria-label": "Another condition" });
  show(place, h("div", { class: "card-head" }, h("h2", {}, "Filters"), where.length > 0 && h("button", { type: "button", class: "quiet small", onclick: () => onchange([]) }, "Clear")),
    where.some((one) => !offered.has(one)) && h("div", { class: "chips" }, where.filter((one) => !offered.has(one)).map((one) =>
      h("button", { type: "button", class: "chip", "aria-pressed": "true", "aria-label": `Remove ${one}`, onclick: () => without(one) }, `${one} ×`))),
    offered.size > 0 && h("div", { class: "chips", role: "group", "aria-label": "Labels" }, facets.labels.slice(0, MOST).map((one) => chip(`${one.value}`, `label=${one.value}`))),
    (facets?.fields || []).slice(0, 4).map((field) => h("div", { class: "field" }, h("label", { for: `field-${field.field}`, class: "small" }, field.field),
      h("select", { id: `field-${field.field}`, onchange: (event) => add(event.target.value) },
        h("option", { value: "" }, `any (${count(field.items, "item")})`),
        field.values.map((one) => h("option", { value: `${field.field}=${one.value}` }, `${one.value} (${one.items})`))))),
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); add(own.value.trim()); } }, own, h("button", { type: "submit" }, "Add")));
}
