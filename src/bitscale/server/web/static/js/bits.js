// The bits slider: the same index at any code length, with what each length costs and what it is worth.
import { count, h, show, svg } from "./dom.js";

export const LEAST = 4;
let unfolded = false; // where there is little room: what a length costs and is worth is folded until asked for

export function draw(place, info, bits, onchange) {
  const least = Math.min(LEAST, info.n_bits);
  const number = h("span", { class: "big number", id: "bits-now" }, bits);
  const slider = h("input", {
    type: "range", id: "bits-slider", min: least, max: info.n_bits, step: 1, value: bits, "aria-label": "Bits compared",
    "aria-valuetext": `${bits} bits`,
    oninput: (event) => { const now = Number(event.target.value); set(now); onchange(now); },
  });
  slider.value = bits;
  const bytes = h("dd", { id: "bytes" });
  const weight = h("dd", {});
  const plain = !info.map_by_bits && info.bit_weights.every((one) => one === info.bit_weights[0]); // a curve would say nothing
  const curve = h("div", { hidden: plain });
  const choose = (now) => { slider.value = now; set(now); onchange(now); };
  const jumps = h("div", { class: "chips jumps", role: "group", "aria-label": "Lengths" }, [8, 16, 32, 64, 128, 256, 1024].filter((one) => one <= info.n_bits).map((one) =>
    h("button", { type: "button", class: "chip", "aria-label": `Compare ${one} bits`, onclick: () => choose(one) }, `${one}`)));
  const set = (now) => {
    number.textContent = now;
    slider.setAttribute("aria-valuetext", `${now} bits`);
    bytes.textContent = now === 8 ? "1 byte" : `${Number.isInteger(now / 8) ? now / 8 : (now / 8).toFixed(1)} bytes`;
    weight.textContent = `${(100 * sharesOf(info)[now - 1]).toFixed(0)} %`;
    if (!plain) show(curve, ...drawn(info, now));
    for (const one of jumps.children) one.setAttribute("aria-pressed", String(Number(one.textContent) === now));
  };
  set(bits);
  const more = h("details", { class: "folded cost", open: unfolded || matchMedia("(min-width: 60.01rem)").matches },
    h("summary", { onclick: () => { unfolded = !more.open; } }, h("span", { class: "small" }, "What this length costs and is worth")),
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, "An item takes"), bytes),
      h("div", {}, h("dt", {}, "Answered in"), h("dd", { id: "latency" }, "–")),
      !plain && h("div", {}, h("dt", {}, "Of all weight"), weight),
      h("div", {}, h("dt", {}, "The index stores"), h("dd", {}, count(info.bytes_per_item, "byte")))), curve);
  show(place, h("div", { class: "card-head" }, h("h2", { id: "bits-title" }, "Bits"), h("span", {}, number, h("span", { class: "muted" }, ` of ${info.n_bits}`))),
    h("div", {}, slider, h("div", { class: "ends" }, h("span", {}, `${least} shortest`), h("span", {}, `${info.n_bits} all`))), jumps, more);
}

function sharesOf(info) {
  const total = info.bit_weights.reduce((sum, one) => sum + one, 0) || 1;
  let sum = 0;
  return info.bit_weights.map((one) => (sum += one) / total);
}

function drawn(info, bits) {
  const known = Object.entries(info.map_by_bits || {}).map(([at, value]) => [Number(at), value]).sort((a, b) => a[0] - b[0]);
  const points = known.length > 1 ? known : sharesOf(info).map((share, bit) => [bit + 1, share]);
  const title = known.length > 1 ? `MAP by bits, as measured on ${info.map_on}` : "Weight of the first bits, of all";
  const last = info.n_bits;
  const x = (at) => 34 + (at / last) * 256;
  const y = (value) => 96 - Math.min(value, 1) * 82;
  const line = points.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const here = value(points, bits);
  const outside = known.length > 1 && (bits < points[0][0] || bits > points.at(-1)[0]);
  const words = known.length > 1 ? (outside ? `not measured at ${bits} bits` : `MAP ${(100 * here).toFixed(1)} at ${bits} bits`) : `the first ${bits} bits carry ${(100 * here).toFixed(0)} % of the weight`;
  const label = (at, text, anchor) => svg("text", { x: at, y: 112, "text-anchor": anchor }, text);
  return [h("p", { class: "small muted" }, title, known.length > 1 ? h("strong", { class: "worth" }, words) : null),
    svg("svg", { class: "curve", viewBox: "0 0 300 118", role: "img", "aria-label": `${title}: ${words}` },
      svg("path", { class: "axis", d: "M34 96H292M34 14H292" }),
      svg("path", { class: "area", d: `${line}L${x(points.at(-1)[0])} 96L${x(points[0][0])} 96Z` }), svg("path", { class: "line", d: line }),
      outside ? null : svg("circle", { class: "here", cx: x(bits), cy: y(here), r: 5.5 }),
      ...(known.length > 1 ? known.map(([at, map]) => svg("circle", { class: "point", cx: x(at), cy: y(map), r: 2 })) : []),
      svg("text", { x: 30, y: 18, "text-anchor": "end" }, "100"), svg("text", { x: 30, y: 99, "text-anchor": "end" }, "0"),
      label(x(1), "1", "middle"), label(x(last), `${last}`, "end"))];
}

function value(points, bits) {
  const after = points.findIndex(([at]) => at >= bits);
  if (after < 0) return points.at(-1)[1];
  if (after === 0 || points[after][0] === bits) return points[after][1];
  const [[a, low], [b, high]] = [points[after - 1], points[after]];
  return low + ((high - low) * (bits - a)) / (b - a);
}
