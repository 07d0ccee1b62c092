// A code as a strip of bits, heaviest first: as wide as they weigh, in another colour where they disagree.
import { svg } from "./dom.js";

export function strip(weights, bits, disagree, height = 10) {
  const off = new Set(disagree);
  const total = weights.slice(0, bits).reduce((sum, weight) => sum + weight, 0) || 1;
  const paths = { agree: "", differ: "" };
  let x = 0;
  for (let bit = 0; bit < bits; bit++) {
    const wide = (weights[bit] / total) * 400;
    const gap = Math.min(1.2, wide / 4);
    const top = off.has(bit) ? 0 : height * 0.25;
    const tall = off.has(bit) ? height : height * 0.5;
    paths[off.has(bit) ? "differ" : "agree"] += `M${x.toFixed(2)} ${top}h${(wide - gap).toFixed(2)}v${tall}h-${(wide - gap).toFixed(2)}z`;
    x += wide;
  }
  const words = `${off.size} of ${bits} bits disagree`;
  return svg("svg", { class: "strip", viewBox: `0 0 400 ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
    svg("path", { class: "agree", d: paths.agree }), svg("path", { class: "differ", d: paths.differ }));
}
