// Browsing without a query: all items in order, filtered, a page at a time.
import * as api from "./api.js";
import { at, count, h, problem, say, show } from "./dom.js";
import { plainTile, waiting } from "./tile.js";

export async function draw(state, info, onagain) {
  const place = at("results");
  if (!info.items) {
    say("");
    show(place, h("div", { class: "notice" }, h("h2", {}, "Nothing here yet"), h("p", { class: "muted" }, "Add pictures on the command line: ", h("code", {}, `bitscale add ${state.collection}.bsc FOLDER`))));
    return;
  }
  show(place, waiting(12));
  const grid = h("ul", { class: "grid", "aria-label": "Items" });
  const more = h("div", { class: "more" });
  let after = -1;
  let first = true;
  const load = async () => {
    try {
      const page = await api.items(state.collection, after, state.where);
      const tiles = page.items.map((item) => plainTile(state.collection, item, { onshow: () => onagain(item.id) }));
      grid.append(...tiles);
      after = page.next;
      show(more, after !== null && h("button", { type: "button", id: "more", onclick: load }, "Show more"));
      if (first) show(place, tiles.length ? [grid, more] : h("div", { class: "notice" }, h("h2", {}, "No item fits these filters")));
      else tiles[0]?.querySelector("button")?.focus();
      first = false;
      const all = state.where.length ? "" : ` of ${info.items.toLocaleString("en")}`;
      say(`${count(grid.children.length, "item")}${all}. Click one to search for others like it.`);
      problem(null);
    } catch (error) { if (first) show(place); say(""); problem(error, load); }
  };
  await load();
}
