// What is there more than once: groups, which picture to keep, and a plan to download. Nothing is deleted here.
import * as api from "./api.js";
import { at, bytes, count, h, problem, say, show } from "./dom.js";
import { plainTile, waiting } from "./tile.js";

const KINDS = [["identical", "Identical files"], ["near", "Nearly the same picture"], ["related", "Related pictures"]];
const MOST = 40; // groups of a kind
const SHOWN = 11; // pictures of a group, besides the one to keep

export async function draw(state, onagain, alive) {
  const place = at("results");
  show(place, waiting(6));
  say("Looking for duplicates…");
  try {
    let told = await api.duplicates(state.collection);
    while (told.status === "running" && alive()) {
      say(told.total ? `Looking for duplicates: ${told.done.toLocaleString("en")} of ${told.total.toLocaleString("en")}…` : "Looking for duplicates…");
      await new Promise((done) => setTimeout(done, 500));
      told = await api.duplicates(state.collection);
    }
    if (!alive()) return;
    problem(null);
    groups(place, state, told.duplicates, onagain);
  } catch (error) {
    if (!alive()) return;
    show(place);
    say("");
    problem(error, () => draw(state, onagain, alive));
  }
}

function groups(place, state, found, onagain) {
  const total = KINDS.reduce((sum, [kind]) => sum + found[kind].length, 0);
  const unread = found.unread ? ` ${count(found.unread, "picture is", "pictures are")} gone, changed or cannot be read.` : "";
  say(`${count(total, "group")} among ${count(found.items, "item")}.${unread} Nothing is deleted.`);
  if (!total) {
    show(place, h("div", { class: "notice" }, h("h2", {}, "No duplicates"), h("p", { class: "muted" }, "Every picture is here once.")));
    return;
  }
  const plan = (form, words) => h("a", { class: form === "sh" ? "button main" : "button", href: api.planOf(state.collection, form), download: "" }, words);
  show(place, h("div", { class: "buttons" }, plan("sh", "Download a plan"), plan("csv", "As a table"), plan("json", "As JSON")),
    h("p", { class: "small muted under" }, "The plan is a script in which every command is a comment: read it, and decide."),
    KINDS.filter(([kind]) => found[kind].length).map(([kind, title]) => [
      h("h2", { class: "section-head" }, `${title} (${found[kind].length})`),
      h("div", { class: "groups" }, found[kind].slice(0, MOST).map((group) => drawn(state, kind, group, onagain))),
      found[kind].length > MOST && h("p", { class: "muted" }, `${found[kind].length - MOST} more groups are in the plan.`)]).flat(3));
}

function drawn(state, kind, group, onagain) {
  const tile = (member, badge) => plainTile(state.collection, { ...member, labels: [], has_picture: true }, {
    badge, onshow: () => onagain(member.id), words: [member.differs, member.width && `${member.width}×${member.height}`, bytes(member.size)].filter(Boolean).join(" · "),
  });
  const all = [group.keep, ...group.others];
  return h("div", { class: all.length > 2 ? "group many" : "group", role: "group", "aria-label": `${count(all.length, "picture")}, group of ${group.keep.name || group.keep.id}` },
    h("div", { class: "group-head" }, h("strong", {}, count(all.length, "picture")), kind !== "related" && h("span", { class: "small muted" }, `Keep the first: ${group.why}`),
      group.others.length > SHOWN && h("span", { class: "small muted" }, `${group.others.length - SHOWN} more are in the plan`)),
    h("ul", { class: "grid" }, tile(group.keep, kind === "related" ? null : "keep"), group.others.slice(0, SHOWN).map((member) => tile(member))));
}
