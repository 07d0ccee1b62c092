"""Put measured numbers into the README, between its markers; nobody types them.

python benchmarks/quote.py            rewrite README.md
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "flat": "FAISS IndexBinaryFlat (unweighted)",
    "fastscan": "FAISS IndexPQFastScan + re-rank",
    "multihash": "FAISS IndexBinaryMultiHash (unweighted)",
    "pq": "FAISS IndexPQ",
    "numpy": "NumPy 8-bit tables (the paper's method)",
}
KINDS = {"random": "random codes", "c100-10": "100 clusters, 10 % flips", "c10-0.5": "10 clusters, 0.5 % flips"}


def search_table(results: dict) -> str:
    """Milliseconds a query, ours and how many times slower each peer is."""
    peers = list(NAMES)
    lines = [
        "| 64-bit codes, k=10, one query | bitscale | " + " | ".join(NAMES[name] for name in peers) + " |",
        "|---|---|" + "---|" * len(peers),
    ]
    for row in results["peers"]:
        if row["codes"] not in KINDS or row["k"] != 10 or row["batch"] != 1:
            continue
        ours = row["seconds_per_query"]["bitscale"] * 1e3
        cells = [f"{row['ratio'][name]:.0f}x" if name in row["ratio"] else "" for name in peers]
        lines.append(f"| {row['n'] / 1e6:g}M, {KINDS[row['codes']]} | {ours:.3f} ms | " + " | ".join(cells) + " |")
    at = results["machine"]
    note = (
        f"One thread, weights falling from 1 to e^-2, queries not in the database; medians of {results['rounds']} "
        "interleaved rounds through the public interfaces, each pass right after an untimed one of the same method; "
        "20x means the peer takes 20 times as long. "
        f"{at['cpu']}, {at['kernel']} kernel, faiss {at['faiss']}."
    )
    return "\n".join([*lines, "", note])


def quoted(text: str, results: dict) -> str:
    """The README with its table replaced."""
    begin, end = "<!-- begin results/search.json -->", "<!-- end results/search.json -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{search_table(results)}\n{end}", text, flags=re.S)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(quoted(readme.read_text(), json.loads((ROOT / "results" / "search.json").read_text())))
