// Keys: through the grid with arrows, marks and comparing with letters, bits with brackets.
import { at, h, show } from "./dom.js";

const KEYS = [["← → ↑ ↓", "from picture to picture"], ["Enter", "search for others like it"], ["C", "compare it with what was searched for"],
  ["R, W", "mark it right or wrong"], ["[ and ]", "fewer or more bits"], ["/", "write a filter"], ["Esc", "close what is open"], ["?", "this list"]];

export function help() {
  const dialog = at("keys");
  show(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "keys-title" }, "Keys"), h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close")),
    h("table", { class: "helped" }, h("tbody", {}, KEYS.map(([key, words]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, words))))),
    h("p", { class: "small muted bits-table" }, "A picture can also be dropped anywhere on the page, or pasted. Everything here is also in the API: ", h("a", { href: "/docs" }, "its description"), "."));
  dialog.showModal();
}

export function listen({ onbits }) {
  at("help").addEventListener("click", help);
  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input[type=text], select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector("dialog[open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const tile = event.target.closest?.(".tile");
    const press = (selector) => { const button = tile?.querySelector(selector); if (button) { event.preventDefault(); button.click(); } };
    if (event.key === "?") { event.preventDefault(); help(); }
    else if (event.key === "/") { event.preventDefault(); write(); }
    else if (event.key === "[") onbits(-1);
    else if (event.key === "]") onbits(1);
    else if (key === "c") press("button.compare");
    else if (key === "r") press("button.mark.right");
    else if (key === "w") press("button.mark.wrong");
    else if (event.key.startsWith("Arrow") && tile) move(event, tile);
  });
}

function write() {
  const field = at("condition");
  if (field) field.closest("details").open = true;
  field?.focus();
}

function move(event, tile) {
  const tiles = [...tile.parentElement.children];
  const wide = tiles.filter((one) => one.offsetTop === tiles[0].offsetTop).length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
  const next = tiles[tiles.indexOf(tile) + step]?.querySelector("button.show");
  if (next) { event.preventDefault(); next.focus(); }
}
