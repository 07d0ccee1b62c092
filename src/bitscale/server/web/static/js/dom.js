// Elements from data: text is always text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function build(made, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const h = (tag, properties, ...children) => build(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => build(document.createElementNS(SVG, tag), properties, children);
export const at = (id) => document.getElementById(id);

// What was drawn before gives way. The focus stays where it was: on the same element, or one of the same name in its place.
export function show(place, ...children) {
  const focused = document.activeElement;
  const within = place !== focused && place.contains(focused);
  place.replaceChildren(...children.flat().filter(Boolean));
  if (!within) return;
  const same = place.contains(focused) ? focused : [...place.querySelectorAll(focused.localName)].find((one) => nameOf(one) === nameOf(focused));
  (same || at("main")).focus({ preventScroll: true }); // gone: on from the beginning of what is shown
}

const nameOf = (element) => element.id || element.getAttribute("aria-label") || element.textContent;

export function say(text) {
  if (at("status").textContent !== text) at("status").textContent = text;
}

export function problem(error, again) {
  if (!error) { show(at("problem")); return; }
  const passes = !(error.status >= 400 && error.status < 500) || error.status === 429; // else the same would be said again
  const retry = again && passes && h("button", { type: "button", onclick: again }, "Try again");
  show(at("problem"), h("div", { class: "problem" }, h("span", {}, error.message), retry));
  at("problem").scrollIntoView({ block: "nearest" }); // on a phone it stands below how to search
}

export const bytes = (n) => (n < 1e6 ? `${Math.max(1, Math.round(n / 1e3))} kB` : `${(n / 1e6).toFixed(1)} MB`);

export function count(n, one, many = `${one}s`) { return `${n.toLocaleString("en")} ${n === 1 ? one : many}`; }
