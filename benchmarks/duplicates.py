"""Duplicates among full-resolution photographs: ours against pHash, for 17 kinds of edits.

    python benchmarks/duplicates.py --photos FOLDER... --distractors FOLDER... [--out results/duplicates.json]

140 photographs are edited in 17 ways each (`photo_edits.py`, drawn by a seed) and stand among 3,000 pictures,
wallpapers in several colours (`--distractors`, as Debian's mate-backgrounds and gnome-backgrounds) included. An edit is
found where it is in one group with its original, near or related. pHash is that of PyPI's ImageHash, 64 bits, within 8.
A false pair is one in a group of pictures that come from different originals and are not one photograph by their
pixels.

Limits of `looks` were set with `--tune`: on the third of the photographs whose names say so (`is_tuned_on`), which are
never the originals that are measured, though they stand among the 3,000 pictures. One is an exception: SMALL_VARIANT
was set after a look at seed 2, where one small picture was missed; the results are of seed 3, which shares 9 of 140
originals with it, not that one, and most of the other pictures. `--work` keeps edits and collection.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zlib
from collections import defaultdict
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path

import imagehash
import numpy as np

import bitscale as bs
from bitscale.collection.duplicates.find import Duplicates, find_duplicates
from bitscale.collection.ingest.default_model import default_hasher
from photo_edits import EDITS, edit_path, write_edit
from photographs import drawn, in_rgb, photographs, same_photograph
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
PICTURES, ORIGINALS, WITHIN = 3_000, 140, 8


def is_tuned_on(path: Path) -> bool:
    """Whether limits were set on this photograph."""
    return zlib.crc32(path.name.encode()) % 3 == 0


def made_edits(originals: list[Path], folder: Path, seed: int) -> dict[Path, tuple[str, Path]]:
    """Edited copies on disk: path -> kind and original; what is there already stays."""
    edits = {}
    for number, original in enumerate(originals):
        stem = f"{number:03}-{original.stem}"
        there = {edit_path(kind, folder, stem): (kind, original) for kind in EDITS}
        if not all(path.exists() for path in there):
            rng, picture = np.random.default_rng([seed, number]), in_rgb(original)
            for kind in EDITS:
                write_edit(picture, kind, folder, stem, rng)
        edits |= there
    return edits


def hashes(paths: list[Path], kept: Path) -> dict[Path, np.ndarray]:
    """pHash of every picture, as ImageHash makes it; kept in a file."""
    if not kept.exists():
        np.savez(kept, bits=np.stack([imagehash.phash(in_rgb(path)).hash.ravel() for path in paths]))
    return dict(zip(paths, np.load(kept)["bits"], strict=True))


def groups_of(found: Duplicates) -> tuple[list[set[Path]], list[set[Path]]]:
    """Pictures in one group: near ones, identical ones with them; and related ones with all that stand for them."""
    near = [{Path(m.item.path) for m in group.members} for group in found.identical + found.near]
    stands: dict[Path, set[Path]] = defaultdict(set)
    for group in near:
        for path in group:
            stands[path] |= group
    for path in list(stands):  # an identical file may stand for a near group
        stands[path] = set().union(*(stands[other] for other in stands[path]))
    whole = list({frozenset(group): group for group in stands.values()}.values())
    related = [set() for _ in found.related]
    for group, members in zip(related, found.related, strict=True):
        for member in members.members:
            group |= {Path(member.item.path)} | stands[Path(member.item.path)]
    return whole, related


def false_pairs(
    groups: list[set[Path]], edits: dict[Path, tuple[str, Path]], known: list[set[Path]]
) -> list[list[str]]:
    """Pairs of originals whose pictures share a group although they are not one photograph."""
    wrong = set()
    for group in groups:
        roots = sorted({edits[path][1] if path in edits else path for path in group})
        for pair in combinations(roots, 2):
            if not any(set(pair) <= one for one in known) and not same_photograph(*pair):
                wrong.add(pair)
    return sorted([one.name, other.name] for one, other in wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, nargs="+", required=True)
    parser.add_argument("--distractors", type=Path, nargs="*", default=[])
    parser.add_argument("--features", default=None, help="the default network unless said")
    parser.add_argument("--bits", type=int, default=None)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--tune", action="store_true", help="on the photographs that limits are set on")
    parser.add_argument("--work", type=Path, help="a folder in which edits and collection are kept")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "duplicates.json")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    extra, every = photographs(options.distractors), photographs(options.photos)
    every = [path for path in every if is_tuned_on(path)] if options.tune else every
    photos = drawn(every, PICTURES - len(extra), rng)
    originals = drawn([path for path in photos if is_tuned_on(path) == options.tune], ORIGINALS, rng)
    base = [*photos, *extra]
    how = {name: value for name, value in (("features", options.features), ("n_bits", options.bits)) if value}
    with nullcontext(options.work) if options.work else tempfile.TemporaryDirectory(dir=options.out.parent) as folder:
        copies, home = Path(folder) / "edits", Path(folder) / "c.bsc"
        copies.mkdir(parents=True, exist_ok=True)
        edits = made_edits(originals, copies, options.seed)
        made = home.exists()
        with (
            bs.Collection.open(home) if made else bs.Collection.create(home, default_hasher(base, **how)) as collection
        ):
            if not made:
                collection.add([*base, copies])
            start = time.process_time()
            found = find_duplicates(collection)
            seconds = time.process_time() - start
            model = {"features": collection.hasher.features, "n_bits": collection.n_bits}
        told = measured(found, edits, base, hashes([*base, *edits], Path(folder) / "hashes.npz"))
    told |= {**model, "seed": options.seed, "pictures": len(base), "tuning": options.tune}
    told |= {"originals": ORIGINALS, "edits": len(edits), "processor seconds to find": round(seconds, 1)}
    options.out.write_text(json.dumps({"machine": machine(), **told}, indent=1) + "\n")
    print(json.dumps(told, indent=1))


def measured(found: Duplicates, edits: dict[Path, tuple[str, Path]], base: list[Path], hashed: dict) -> dict:
    """Recall of every kind of edit in percent, false pairs, and how often the original is the one to keep."""
    near, related = groups_of(found)
    recall: dict[str, dict[str, list[bool]]] = {kind: defaultdict(list) for kind in EDITS}
    for path, (kind, original) in edits.items():
        is_near = any({path, original} <= group for group in near)
        recall[kind]["near"].append(is_near)
        recall[kind]["near or related"].append(is_near or any({path, original} <= group for group in related))
        recall[kind]["phash"].append(int((hashed[path] != hashed[original]).sum()) <= WITHIN)
    known = near_in_base(base)
    edited = [group.members for group in found.near if any(Path(m.item.path) in edits for m in group.members)]
    kept = [Path(members[0].item.path) not in edits for members in edited]
    bits = np.stack([hashed[path] for path in base]).astype(np.int32)
    apart = bits.sum(1)[:, None] + bits.sum(1)[None] - 2 * bits @ bits.T
    close = [(base[i], base[j]) for i, j in np.argwhere(np.triu(apart <= WITHIN, 1)).tolist()]
    return {
        "recall": {
            kind: {name: round(100 * float(np.mean(v)), 1) for name, v in some.items()} for kind, some in recall.items()
        },
        "false near pairs": false_pairs(near, edits, known),
        "false related pairs": false_pairs(related, edits, known),
        "false pairs of phash": sum(not same_photograph(*pair) for pair in close),
        "groups whose original is kept": percent(kept),
    }


def percent(told: list[bool]) -> float:
    return round(100 * float(np.mean(told)), 1)


def near_in_base(base: list[Path]) -> list[set[Path]]:
    """Files that are one photograph by their bytes, which need no look at their pixels."""
    by_content = defaultdict(set)
    for path in base:
        by_content[path.read_bytes()].add(path)
    return [group for group in by_content.values() if len(group) > 1]


if __name__ == "__main__":
    main()
