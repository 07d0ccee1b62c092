"""Trials of how the map that comes with bitscale is learned, on photographs that no row searches.

    python benchmarks/prior_trials.py --work FOLDER [--set steps=1400 copies=0,1 general=11500 ...] [--root DATA]

A map is learned as benchmarks/prior.py learns it, with these settings instead of its own, and `choosing` is searched
(benchmarks/photo_sets.py): copies, agreement, and what every length has beyond ITQ fitted on `own` for it. Names in
capitals are constants of bitscale.hashers.neighbours; `most` and `slope` are those of `copies_count`. Added to
results/unsupervised-trials.json as "maps beforehand".
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.hashers import neighbours, nested_map
from five_edits import FIVE
from photo_sets import Sets
from prior import BATCH, COPIES, STEPS
from timing import machine
from unsupervised import LENGTHS, LONG, Found, Searched, first_of_all, fitted, percent, signs

ROOT = Path(__file__).resolve().parents[1]


def itq_rows(searched: Searched, work: Path) -> Found:
    """What ITQ finds at each length; kept in `work`."""
    kept = work / "itq-choosing.json"
    if not kept.exists():
        rows = {str(b): searched.measured(fitted("itq", b, "none", searched.own), (b,))[str(b)] for b in LENGTHS}
        kept.write_text(json.dumps(rows))
    found: Found = json.loads(kept.read_text())
    return found


def measured(searched: Searched, middle: np.ndarray, matrix: np.ndarray) -> Found:
    """As `Searched.measured`, for a map about a middle that `own` moves as a collection's pictures do."""
    moved = (searched.own.sum(axis=0) + 100 * middle) / (len(searched.own) + 100)
    values = [signs((x - moved) @ matrix) for x in (searched.x, *(searched.copies[name] for name in FIVE))]
    found: Found = {}
    for bits in LONG:
        items, *copies = (some[:, :bits] for some in values)
        first = {name: first_of_all(some, items) for name, some in zip(FIVE, copies, strict=True)}
        found[str(bits)] = {**searched.agreement(items, items), "original first": first}
    return found


def beyond(ours: Found, itq: Found) -> Found:
    """Points beyond ITQ: the least, the mean, and how many of all are more than 1 below."""
    gains = []
    for bits in map(str, LENGTHS):
        gains += [ours[bits][name] - itq[bits][name] for name in ("top 10", "top 50")]
        gains += [ours[bits]["original first"][name] - itq[bits]["original first"][name] for name in FIVE]
    return {"least": min(gains), "mean": percent(np.array(gains) / 100), "below -1": sum(g < -1 for g in gains)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@224")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--set", nargs="*", default=[], dest="given", help="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unsupervised-trials.json")
    options = parser.parse_args()
    how: dict[str, Any] = {"steps": STEPS, "rate": 0.002, "copies": ",".join(map(str, COPIES)), "general": 0}
    how |= {"most": 7.0, "slope": 26.0, "least": 0.4, "axes": nested_map.AXES, "seed": 0, "batch": BATCH}
    for name, _, value in (one.partition("=") for one in options.given):
        how[name] = value if name == "copies" else float(value) if "." in value else int(value)
        if name.isupper():
            setattr(neighbours, name, how[name])
    count = lambda length, *, given: min(max((length - 4) / how["slope"], how["least"]), how["most"])  # noqa: E731
    neighbours.copies_count = count
    sets = Sets(options.features, options.work, options.root)
    searched = Searched(sets, "choosing")
    x = sets.originals("general")
    n = how["general"] or len(x)
    draws = [sets.general_copies(int(draw))[:n] for draw in str(how["copies"]).split(",")]
    start = time.process_time()
    middle, matrix = nested_map.nested_map(
        x[:n], 1024, iterations=50, steps=how["steps"], rate=how["rate"], rng=np.random.default_rng(how["seed"]),
        copies=np.stack(draws), most_axes=how["axes"], batch=how["batch"],
    )  # fmt: skip
    seconds = time.process_time() - start
    ours = measured(
        searched, middle.astype(np.float16).astype(np.float32), matrix.astype(np.float16).astype(np.float32)
    )
    against = beyond(ours, itq_rows(searched, options.work))
    row = {"settings": how, "processor seconds": round(seconds), "against itq": against, "found": ours}
    kept = json.loads(options.out.read_text())
    told = kept.setdefault("maps beforehand", {"by": "benchmarks/prior_trials.py", "machine": machine(), "trials": []})
    told["trials"].append(row)
    options.out.write_text(json.dumps(kept, indent=1) + "\n")
    print(how, round(seconds), against)
    for bits, some in ours.items():
        print(bits, some["top 10"], some["top 50"], *some["original first"].values())


if __name__ == "__main__":
    main()
