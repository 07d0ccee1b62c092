"""How a contact sheet looks, in light and in dark."""

STYLE = """
.bs-sheet{--ink:#1c2128;--soft:#5c6773;--paper:#f6f7f9;--card:#fff;--line:#dfe3e8;--good:#157a4a;--bad:#8a93a0;
--query:#2458c5;--warn:#9a6700;color:var(--ink);background:var(--paper);font:14px/1.45 system-ui,-apple-system,
"Segoe UI",Roboto,"Noto Sans",sans-serif;padding:2rem clamp(1rem,4vw,3rem);margin:0}
@media (prefers-color-scheme:dark){.bs-sheet{--ink:#e6e9ee;--soft:#9aa5b1;--paper:#14171b;--card:#1d2127;
--line:#2f353d;--good:#4cc38a;--bad:#7b8591;--query:#7aa5ff;--warn:#e0b252}}
body:has(>.bs-sheet){margin:0;background:#f6f7f9}
@media (prefers-color-scheme:dark){body:has(>.bs-sheet){background:#14171b}}
.bs-sheet h1{font-size:1.55rem;font-weight:650;letter-spacing:-.01em;margin:0}
.bs-sheet header p{color:var(--soft);margin:.2rem 0 1.6rem}
.bs-sheet h2{font-size:1.02rem;font-weight:600;margin:0;overflow-wrap:anywhere}
.bs-sheet{display:flex;flex-wrap:wrap;column-gap:28px}.bs-sheet header,.bs-section,.bs-more{flex:1 1 100%;min-width:0}
.bs-sheet .bs-few{flex:0 0 auto}.bs-few-1{width:178px}.bs-few-2{width:370px}.bs-few-3{width:562px}
.bs-section{margin:0 0 2.2rem}.bs-section>p{color:var(--soft);margin:.1rem 0 .8rem}
.bs-muted>p:first-of-type{color:var(--warn)}
.bs-grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(164px,1fr));gap:14px}
.bs-tile{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;overflow:hidden;
display:flex;flex-direction:column;border-top:3px solid var(--line)}
.bs-picture,.bs-none{display:flex;align-items:center;justify-content:center;aspect-ratio:4/3;
background:color-mix(in srgb,var(--line) 45%,transparent)}
.bs-picture img{width:100%;height:100%;object-fit:contain}
.bs-picture img[src^="data:image/png"]{image-rendering:pixelated;width:auto;height:88%}
.bs-none{color:var(--soft);font-size:.85em;padding:0 1em;text-align:center}
.bs-tile figcaption{padding:.55rem .7rem .7rem}
.bs-head{display:flex;justify-content:space-between;align-items:baseline;gap:.5em}
.bs-head strong{font-variant-numeric:tabular-nums;font-size:1.08em}
.bs-badge{font-size:.72em;font-weight:600;letter-spacing:.02em;color:var(--bad);white-space:nowrap}
.bs-name{margin:.1rem 0 .3rem;color:var(--ink);font-size:.86em;overflow-wrap:anywhere;display:-webkit-box;
-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden}
.bs-tile ul{list-style:none;margin:0;padding:0;color:var(--soft);font-size:.78em}
.bs-similar,.bs-keep{border-top-color:var(--good)}.bs-similar .bs-badge,.bs-keep .bs-badge{color:var(--good)}
.bs-query,.bs-itself{border-top-color:var(--query)}.bs-query .bs-badge{display:none}
.bs-itself .bs-badge{color:var(--query)}.bs-query strong{color:var(--query)}
.bs-not-similar .bs-picture img{opacity:.72}.bs-cannot-tell .bs-badge{color:var(--warn)}
.bs-bits{display:flex;gap:3px;margin:.35rem 0}.bs-bits i{width:9px;height:9px;border-radius:2px;background:var(--good);
opacity:.75}.bs-bits .bs-off{background:none;box-shadow:inset 0 0 0 1.5px var(--warn);opacity:1}
.bs-more{color:var(--soft);font-size:.85em}
@media print{.bs-tile{break-inside:avoid}}
"""
