// The page: one state, held by the address bar; everything that is shown follows from it.
import * as address from "./address.js";
import * as api from "./api.js";
import * as bits from "./bits.js";
import * as browse from "./browse.js";
import * as compare from "./compare.js";
import { at, count, h, problem, say, show } from "./dom.js";
import * as duplicates from "./duplicates.js";
import * as emphasis from "./emphasis.js";
import * as feedback from "./feedback.js";
import * as filters from "./filters.js";
import * as keyboard from "./keyboard.js";
import * as query from "./query.js";
import * as results from "./results.js";
import { empty, nothingFits, plainTile, waiting } from "./tile.js";

const K = 24;
const TITLES = { search: "Search", browse: "Browse", duplicates: "Duplicates" };
const FOUND = { copy: "this picture is here", "same kind": "something of its kind is here" };
const EXPLAIN_AFTER = 120; // milliseconds without a move of the slider

let state = address.read();
let infos = [];
let role = "read";
let answer = null; // the last one
let learned = null; // code and weights that marks gave
let asking = null; // aborts the search before
let later = 0;
let turn = 0; // of what is drawn: what comes late is dropped
let lesson = 0; // of what is learned: likewise
let onward = false; // the keys go on from the first result, once it is there

const info = () => infos.find((one) => one.name === state.collection);
const asked = () => JSON.stringify([state.collection, state.query]);
const used = () => Math.min(state.bits || info().n_bits, info().n_bits);

function go(change, { replace = false } = {}) {
  state = { ...state, ...change };
  history[replace ? "replaceState" : "pushState"](null, "", address.write(state));
}

// ------------------------------------------------------------------ searching

function body(explain) {
  const asked = learned ? { code: learned.code, model: learned.model, weights: learned.weights } : { ...state.query };
  const itself = learned && state.query.id !== undefined ? 1 : 0; // asked for by a code it counts as one of them
  const how = { k: K + itself, bits: used(), where: state.where, explain };
  if (!learned) Object.assign(how, emphasised());
  return { ...asked, ...how };
}

const emphasised = () => (Object.keys(state.emphasis).length ? { emphasis: state.emphasis } : {});

async function find({ explain = true } = {}) {
  clearTimeout(later);
  asking?.abort();
  asking = new AbortController();
  const begun = performance.now();
  try {
    const found = await api.search(state.collection, body(explain), asking.signal);
    found_(found, performance.now() - begun);
    if (!explain) later = setTimeout(() => find(), EXPLAIN_AFTER);
  } catch (error) { failed(error, () => find()); }
}

function found_(found, took) {
  answer = found;
  for (const match of found.matches) if (match.id === state.query?.id) match.itself = true; // marks ask by a code, not by the id
  problem(null);
  const latency = at("latency");
  if (latency) latency.textContent = `${found.took_ms < 10 ? found.took_ms.toFixed(1) : found.took_ms.toFixed(0)} ms`;
  if (latency) latency.title = `${took.toFixed(0)} ms with the way to the service and back`;
  drawResults();
}

const unfilter = () => { go({ where: [] }); draw(); };

function failed(error, again) {
  if (error.name === "AbortError") return;
  at("results").removeAttribute("aria-busy");
  show(at("results"));
  say("");
  problem(error, again);
}

function drawResults() {
  const place = at("results");
  place.removeAttribute("aria-busy");
  if (!answer.matches.length) {
    say("Nothing found.");
    show(place, state.where.length ? nothingFits(unfilter) : empty(state.collection));
    drawCompare();
    return;
  }
  results.draw(place, state, info(), answer, { onagain: again, oncompare: (id) => { go({ compare: id }); drawCompare(); }, onmark: mark, marks: feedback.marks });
  if (onward && document.activeElement === at("main")) place.querySelector("button.show").focus({ preventScroll: true });
  onward = false;
  const others = answer.matches.filter((match) => !match.itself);
  const best = others.map(results.gradeOf);
  const kind = Object.keys(FOUND).find((one) => best.includes(one));
  const words = answer.finds && (FOUND[kind] || answer.finds);
  const among = answer.matching === null || answer.matching === undefined ? count(answer.items, "item") : `${count(answer.matching, "item")} that fit${answer.matching === 1 ? "s" : ""} the filters`;
  say(`The ${others.length === 1 ? "nearest" : `${others.length} nearest`} of ${among}, by ${answer.bits} bits.${words ? ` ${words[0].toUpperCase()}${words.slice(1)}.` : ""}`);
  drawCompare();
}

const drawCompare = () => compare.draw(state, info(), answer, () => { if (state.compare !== null) go({ compare: null }); });

async function upload(file) {
  afresh();
  go({ view: "search", query: null, compare: null });
  draw({ search: false });
  at("results").setAttribute("aria-busy", "true");
  show(at("results"), waiting(12));
  say("Searching…");
  asking?.abort();
  asking = new AbortController();
  const begun = performance.now();
  try {
    const found = await api.searchPicture(state.collection, file, { k: K, bits: used(), where: state.where, emphasis: state.emphasis }, asking.signal);
    go({ query: { code: found.query.code, model: found.model } }, { replace: true });
    drawSide();
    found_(found, performance.now() - begun);
  } catch (error) { failed(error, () => upload(file)); }
}

const again = (id) => searchFor({ id });

// Another query: nothing that was said or seen of the one before holds.
function afresh() {
  lesson += 1;
  feedback.clear();
  results.forget();
  learned = null;
}

function searchFor(asked) {
  query.forget();
  afresh();
  go({ view: "search", query: asked, compare: null });
  draw();
  scrollTo({ top: 0 });
}

function setBits(now) {
  go({ bits: now === info().n_bits ? null : now }, { replace: true });
  again_({ explain: false });
}

// The same query in another way.
function again_(how) {
  if (!state.query) return;
  if (feedback.marked()) relearn(how);
  else find(how);
}

// ------------------------------------------------------------------ marks

function mark(id, kind) {
  feedback.set(id, kind);
  drawResults();
  relearn();
}

async function relearn({ explain = true } = {}) {
  const mine = (lesson += 1);
  let found = null;
  if (feedback.marked()) {
    try { found = await api.learn(state.collection, { ...feedback.said(state.query, used()), ...emphasised() }); } catch (error) { if (mine === lesson) problem(error); return; }
  }
  if (mine !== lesson) return;
  learned = found;
  drawFeedback();
  await find({ explain });
}

const drawFeedback = (mine = turn) => feedback.draw(at("feedback"), state, info(), role === "write" && info().writable, {
  alive: () => mine === turn && state.view === "search" && state.query !== null,
  onclear: () => { feedback.clear(); relearn(); },
  onkept: () => { say("The marks are kept."); feedback.clear(); drawFeedback(); drawResults(); },
});

// ------------------------------------------------------------------ drawing

function drawSide() {
  const here = info();
  query.draw(at("query"), state, here, take, () => { query.forget(); afresh(); go({ query: null, compare: null }); draw(); }, (text) => searchFor({ text }));
  at("bits").hidden = !state.query && !query.file();
  if (!at("bits").hidden) bits.draw(at("bits"), here, used(), setBits);
  emphasis.draw(at("emphasis"), here, state.emphasis, (now) => { go({ emphasis: now }, { replace: true }); again_({ explain: false }); });
  if (!state.query) at("emphasis").hidden = true;
  drawFilters();
  if (state.query && !feedback.marked()) drawFeedback();
  at("feedback").hidden = at("feedback").hidden || !state.query;
}

async function drawFilters() {
  const change = (where) => { go({ where }); draw(); };
  filters.draw(at("filters"), info().facets, state.where, change);
  if (info().facets) return;
  const here = info();
  try { here.facets = await api.facets(here.name); } catch { here.facets = { labels: [], fields: [] }; }
  if (here === info()) filters.draw(at("filters"), here.facets, state.where, change);
}

function draw({ search = true } = {}) {
  turn += 1;
  clearTimeout(later); // a search under way is of what was shown before
  asking?.abort();
  const mine = turn;
  problem(null);
  at("title").textContent = TITLES[state.view];
  document.title = `${TITLES[state.view]} · ${state.collection} · bitscale`;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = address.write({ ...state, view: link.dataset.view, compare: null });
  }
  at("brand").href = address.write({ ...address.read("?"), collection: state.collection });
  document.querySelector(".page").classList.toggle("wide", state.view === "duplicates");
  drawSide();
  for (const part of ["query", "bits", "emphasis", "feedback"]) if (state.view === "browse") at(part).hidden = true;
  at("query").hidden = state.view !== "search";
  if (state.view === "browse") browse.draw(state, info(), { onagain: again, unfilter, alive: () => mine === turn });
  else if (state.view === "duplicates") duplicates.draw(state, again, () => mine === turn);
  else if (state.query && search) begin();
  else if (search) invite(mine);
}

function begin() {
  if (!at("results").querySelector("ol.grid")) show(at("results"), waiting(12));
  onward = document.activeElement === at("main");
  at("results").setAttribute("aria-busy", "true");
  find();
}

async function invite(mine) {
  const place = at("results");
  if (!info().items) {
    say("");
    show(place, empty(state.collection));
    return;
  }
  say(`${count(info().items, "item")} of ${info().n_bits} bits each. Choose a picture of yours, or one of these.`);
  show(place, waiting(12));
  try {
    const page = await api.items(state.collection, -1, state.where, 24);
    if (mine !== turn) return;
    show(place, page.items.length ? h("ul", { class: "grid", "aria-label": "Some items" }, page.items.map((item) => plainTile(state.collection, item, { onshow: () => again(item.id) })))
      : nothingFits(unfilter));
  } catch (error) { if (mine === turn) failed(error, () => draw()); }
}

// ------------------------------------------------------------------ beginning

const take = query.listen((file) => upload(file), (name) => problem(new Error(`${name || "What was dropped"} is no picture. Choose a JPEG, PNG, WebP or another picture file.`)));

async function start() {
  try {
    const [who, told] = await Promise.all([api.session(), api.collections()]);
    role = who.role;
    infos = told.collections;
    at("sign-out").hidden = !who.keys_required;
  } catch (error) { problem(error, start); return; }
  if (!infos.length) { show(at("results"), h("div", { class: "notice" }, h("h2", {}, "No collection can be seen with this key"))); return; }
  if (!info()) go({ collection: infos[0].name, ...(state.collection && { query: null, where: [] }) }, { replace: true });
  show(at("collection"), infos.map((one) => h("option", { value: one.name }, one.name)));
  at("collection").value = state.collection;
  draw();
}

at("collection").addEventListener("change", (event) => {
  query.forget(); afresh();
  go({ ...address.read("?"), collection: event.target.value, view: state.view });
  draw();
});
at("sign-out").addEventListener("click", async () => { await api.signOut().catch(() => {}); location.assign("/sign-in"); });
document.querySelector("nav").addEventListener("click", (event) => {
  const link = event.target.closest("[data-view]");
  if (!link || event.ctrlKey || event.metaKey || !info()) return;
  event.preventDefault();
  go({ view: link.dataset.view, compare: null });
  draw();
});
addEventListener("popstate", () => {
  const before = asked();
  state = address.read();
  if (!info()) { start(); return; }
  at("collection").value = state.collection;
  if (asked() !== before) { query.forget(); afresh(); } // the same search: its picture and marks stay
  draw();
});
keyboard.listen({ onbits: (step) => {
  const slider = at("bits-slider");
  if (!slider) return;
  slider.value = Number(slider.value) + step;
  slider.dispatchEvent(new Event("input"));
} });
start();
