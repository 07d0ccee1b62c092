// Browsing without a query: all items in order, filtered, a page at a time.
import * as api from "./api.js";
import { at, count, h, problem, say, show } from "./dom.js";
import { empty, nothingFits, plainTile, waiting } from "./tile.js";

export async function draw(state, info, { onagain, unfilter, alive }) {
  const place = at("results");
  if (!info.items) {
    say("");
    show(place, empty(state.collection));
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
      if (!alive()) return;
      const tiles = page.items.map((item) => plainTile(state.collection, item, { onshow: () => onagain(item.id) }));
      grid.append(...tiles);
      after = page.next;
      show(more, after !== null && h("button", { type: "button", id: "more", onclick: load }, "Show more"));
      if (first) show(place, tiles.length ? [grid, more] : nothingFits(unfilter));
      else tiles[0]?.querySelector("button")?.focus();
      first = false;
      const many = grid.children.length;
      const all = state.where.length ? (after === null ? "" : `The first ${many} items`) : `${many.toLocaleString("en")} of ${count(info.items, "item")}`;
      say(many ? `${all || count(many, "item")}. Click one to search for others like it.` : "");
      problem(null);
    } catch (error) { if (!alive()) return; if (first) show(place); say(""); problem(error, load); }
  };
  await load();
}
