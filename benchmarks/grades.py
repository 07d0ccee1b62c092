"""Grades: are copies called copies, and nothing else; are matches of the same kind called so, and few random pairs?

    python benchmarks/grades.py --houses FOLDER --photos FOLDER... [--part choosing] [--out results/grades.json]
    python benchmarks/grades.py --houses FOLDER --photos FOLDER... --shares 0.01 0.015 0.02

Half of the photographs (houses of even numbers, every other picture) are for choosing limits by; the other half gives
the results, measured once they stand. 1,100 of a half make a collection: rooms of houses in four kinds (the file's name
says which) and others. Queries: 150 of them in five edits (benchmarks/five_edits.py), and 300 rooms and photographs of
the half that are not in it. Different pictures called copies are counted among the first ten matches of those. Random
pairs are such a query and any item. With --shares, on the half for choosing and without copies: what such shares of
random pairs would give (`KIND` of bitscale.collection.search.grades), into results/grades-trials.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale.collection.ingest.default_model import default_hasher
from bitscale.collection.search import grades
from five_edits import FIVE
from photographs import drawn, in_rgb, photographs, same_photograph
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
ROOMS, PHOTOS, COPIES, OTHERS, RANDOM = 750, 350, 150, 300, 50
QUALITY = {"jpeg": 40}  # in which a copy is saved, 90 unless said


def kind_of(path: str) -> str:
    """bathroom, bedroom, frontal or kitchen; nothing for photographs without a label."""
    name = Path(path).stem.rpartition("_")
    return name[2] if name[0].isdecimal() else ""


def copies_called(collection: bs.Collection, some: list[Path], folder: Path, bits: int | None) -> dict[str, float]:
    """How often the original of a copy is among the first ten, graded a copy, in percent of all copies."""
    called = {}
    for at, (kind, edit) in enumerate(FIVE.items()):
        right = []
        for number, original in enumerate(some):
            path = folder / f"{kind}-{number}.jpg"
            copy = in_rgb(original) if kind == "jpeg" else edit(in_rgb(original), np.random.default_rng([number, at]))
            copy.save(path, quality=QUALITY.get(kind, 90))
            row = collection.search(path, 10, bits=bits)[0]
            right.append(any(m.item.path == str(original) and m.grade == "copy" for m in row))
        called[kind] = round(100 * float(np.mean(right)), 1)
    return called


def others_called(collection: bs.Collection, others: list[Path], bits: int | None) -> dict[str, float]:
    """Grades of matches of pictures that are not in the collection, in percent."""
    rng = np.random.default_rng(6)
    told: Counter[str] = Counter()
    same: Counter[str] = Counter()
    another: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    false_copies = matches = 0
    for path in others:
        results = collection.search(path, 10, bits=bits)
        row = results[0]
        told.update(match.grade for match in row)
        matches += len(row)
        for match in row:
            if match.grade == "copy" and not same_photograph(path, Path(match.item.path)):
                false_copies += 1
            if kind_of(str(path)) and kind_of(match.item.path):
                (same if kind_of(match.item.path) == kind_of(str(path)) else another)[match.grade] += 1
        every = collection.search(results.codes, len(collection), bits=bits)[0]  # by codes alone
        pairs.update(every[int(place)].grade for place in rng.choice(len(every), RANDOM, replace=False))
    called = lambda some, *names: round(100 * sum(some[n] for n in names) / max(sum(some.values()), 1), 2)  # noqa: E731
    return {
        "different pictures called copy": round(100 * false_copies / matches, 3),
        "random pairs called same kind": called(pairs, "same kind", "copy"),
        "same-kind matches called so": called(same, "same kind", "copy"),
        "other-kind matches called same kind": called(another, "same kind", "copy"),
        "cannot tell": called(told, "cannot tell"),
        "matches": matches,
        "random pairs": sum(pairs.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--houses", type=Path, required=True)
    parser.add_argument("--photos", type=Path, nargs="+", required=True)
    parser.add_argument("--features", default=None, help="the default network unless said")
    parser.add_argument("--bits", type=int, default=None)
    parser.add_argument("--part", choices=("choosing", "final"), default="final")
    parser.add_argument("--shares", type=float, nargs="*", default=[], help="of random pairs, to choose from")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.part = "choosing" if options.shares else options.part
    options.out = options.out or ROOT / "results" / ("grades-trials.json" if options.shares else "grades.json")
    rng, odd = np.random.default_rng(4), options.part == "final"
    houses = [path for path in photographs([options.houses]) if kind_of(str(path))]
    houses = [path for path in houses if int(path.stem.partition("_")[0]) % 2 == odd]
    photos = photographs(options.photos)[odd::2]
    some = drawn(houses, ROOMS + OTHERS // 2, rng) + drawn(photos, PHOTOS + OTHERS // 2, rng)
    some = [some[i] for i in rng.permutation(len(some))]
    held, others = some[: ROOMS + PHOTOS], some[ROOMS + PHOTOS :]
    how = {name: value for name, value in (("features", options.features), ("n_bits", options.bits)) if value}
    found: dict[str, object] = {"machine": machine(), "part": options.part, "items": len(held), "queries": len(others)}
    with tempfile.TemporaryDirectory(dir=options.out.parent) as folder:
        hasher = default_hasher(held, **how)
        found |= {"features": hasher.features, "n_bits": hasher.n_bits}
        with bs.Collection.create(Path(folder) / "c.bsc", hasher) as collection:
            collection.add(held)
            for bits in () if options.shares else (None, 16):
                copies = copies_called(collection, held[:COPIES], Path(folder), bits)
                about = {"copies called copy": copies, **others_called(collection, others, bits)}
                found["all bits" if bits is None else f"{bits} bits"] = about
                print(bits, json.dumps(about), flush=True)
        for share in options.shares:
            grades.KIND = share
            with bs.Collection.open(Path(folder) / "c.bsc", read_only=True) as collection:  # which measures anew
                found[f"{share:g} of random pairs"] = others_called(collection, others, None)
                print(share, found[f"{share:g} of random pairs"], flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
