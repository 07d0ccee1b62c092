// What matters: a slider for each attribute that the model learned; all alike is the model's own order.
import { h, show } from "./dom.js";

export function draw(place, info, emphasis, onchange) {
  const names = Object.keys(info.attributes || {});
  place.hidden = names.length < 2;
  if (place.hidden) return;
  const now = Object.fromEntries(names.map((name) => [name, emphasis[name] ?? (Object.keys(emphasis).length ? 0 : 1)]));
  const changed = () => {
    const alike = names.every((name) => now[name] === now[names[0]]);
    onchange(alike ? {} : { ...now });
  };
  show(place, h("h2", {}, "What matters"), names.map((name) => {
    const shown = h("span", { class: "number muted" }, now[name].toFixed(1));
    const slider = h("input", {
      type: "range", min: 0, max: 1, step: 0.1, id: `emphasis-${name}`, "data-attribute": name,
      oninput: (event) => { now[name] = Number(event.target.value); shown.textContent = now[name].toFixed(1); changed(); },
    });
    slider.value = now[name];
    return h("div", { class: "field" }, h("div", { class: "card-head" }, h("label", { for: `emphasis-${name}` }, name), shown), slider);
  }));
}
