// Filters by label and metadata: what there is to choose from, and conditions written out.
import { count, h, show } from "./dom.js";

const MOST = 12;
let unfolded = null; // as chosen here; else where there is room, or something to see

export function draw(place, facets, where, onchange) {
  place.hidden = false;
  const add = (condition) => { if (condition && !where.includes(condition)) onchange([...where, condition]); };
  const without = (condition) => onchange(where.filter((one) => one !== condition));
  const chip = (value, condition) => h("button", {
    type: "button", class: "chip", "aria-pressed": where.includes(condition) ? "true" : "false",
    onclick: () => (where.includes(condition) ? without(condition) : add(condition)),
  }, value);
  const fields = (facets?.fields || []).slice(0, 4);
  const valuesOf = (field) => field.values.map((one) => `${field.field}=${one.value}`);
  const offered = new Set([...(facets?.labels || []).slice(0, MOST).map((one) => `label=${one.value}`), ...fields.flatMap(valuesOf)]);
  const choice = (field) => { // one value at a time: no item has two
    const values = valuesOf(field);
    const made = h("select", { id: `field-${field.field}`, onchange: (event) => onchange([...where.filter((one) => !values.includes(one)), event.target.value].filter(Boolean)) },
      h("option", { value: "" }, `any (${count(field.items, "item")})`),
      field.values.map((one, i) => h("option", { value: values[i] }, `${one.value} (${one.items})`)));
    made.value = values.find((one) => where.includes(one)) || "";
    return made;
  };
  const own = h("input", { type: "text", id: "condition", placeholder: "exif.taken>=2024-05", autocomplete: "off", "aria-label": "Another condition" });
  const folded = h("details", { class: "folded", open: unfolded ?? (matchMedia("(min-width: 60.01rem)").matches || where.length > 0) },
    h("summary", { onclick: () => { unfolded = !folded.open; } }, h("h2", {}, "Filters"), where.length > 0 && h("span", { class: "small muted" }, count(where.length, "condition"))),
    where.length > 0 && h("button", { type: "button", class: "quiet small", onclick: () => onchange([]) }, "Clear filters"),
    where.some((one) => !offered.has(one)) && h("div", { class: "chips" }, where.filter((one) => !offered.has(one)).map((one) =>
      h("button", { type: "button", class: "chip", "aria-pressed": "true", "aria-label": `Remove ${one}`, onclick: () => without(one) }, `${one} ×`))),
    facets?.labels.length > 0 && h("div", { class: "chips", role: "group", "aria-label": "Labels" }, facets.labels.slice(0, MOST).map((one) => chip(`${one.value}`, `label=${one.value}`))),
    fields.map((field) => h("div", { class: "field" }, h("label", { for: `field-${field.field}`, class: "small" }, field.field),
      choice(field))),
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); add(own.value.trim()); } }, own, h("button", { type: "submit" }, "Add")));
  show(place, folded);
}
