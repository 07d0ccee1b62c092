"""Whether two versions of bitscale give the same codes: 1,000 mixed pictures under every kind of model, bit for bit.

    python benchmarks/same_codes.py pictures FOLDER            # draw them from MIRFLICKR, below BITSCALE_DATA
    python benchmarks/same_codes.py models FOLDER              # fit a small model of every kind
    python benchmarks/same_codes.py encode MODELS PICTURES OUT.npz
    python benchmarks/same_codes.py compare OLD.npz NEW.npz [results/same-codes.json]

Fit with the older version, encode with both (PYTHONPATH chooses the version), compare.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N_PICTURES, N_TRAIN = 1_000, 400
LEAST = 5  # pictures of a class to learn from
FORMATS = ("jpg", "png", "webp", "gif", "bmp", "tif")
MODES = {
    "jpg": ("RGB", "L", "CMYK"),
    "png": ("RGB", "L", "P", "RGBA", "LA", "I;16", "1"),
    "webp": ("RGB", "RGBA"),
    "gif": ("P", "L"),
    "bmp": ("RGB", "L", "P", "1"),
    "tif": ("RGB", "L", "RGBA", "CMYK", "I;16", "F", "P"),
}
ORIENTATION = 0x0112  # in EXIF
CLASSICAL = ("lsh", "sh", "itq", "pca-rr", "mlh", "bre", "ksh", "unsupervised")
DEEP = ("drsch", "dsch", "bs-drsch", "bs-dsch", "euclidean", "dsrh", "nested")


def mirflickr() -> tuple[Any, Any]:
    """The pictures, (n, 64, 64, 3), and a label each."""
    folder = Path(os.environ["BITSCALE_DATA"]) / "mirflickr"
    images = np.load(folder / "images.npy", mmap_mode="r")
    return images, np.load(folder / "labels14.npy").argmax(axis=1).astype(np.int64)


def draw(folder: Path) -> None:
    """Write the pictures: formats, modes, sizes and orientations in turn, all from one seed."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    images, _ = mirflickr()
    rng = np.random.default_rng(9)
    for number, row in enumerate(rng.permutation(len(images))[:N_PICTURES]):
        suffix = FORMATS[number % len(FORMATS)]
        modes = MODES[suffix]
        mode = modes[number // len(FORMATS) % len(modes)]
        sizes = [int(side) for side in rng.integers(17, 700, 2)]
        whole = Image.fromarray(images[row]).resize((sizes[0], sizes[1]), Image.Resampling.BICUBIC)
        options: dict[str, Any] = {"quality": int(rng.integers(30, 96))} if suffix in ("jpg", "webp") else {}
        orientation = int(rng.integers(0, 9))  # 0: none told
        if orientation and suffix in ("jpg", "png", "webp", "tif"):
            exif = Image.Exif()
            exif[ORIENTATION] = orientation
            options["exif"] = exif
        in_mode(whole, mode).save(folder / f"{number:04d}.{suffix}", **options)


def in_mode(picture: Any, mode: str) -> Any:
    """The picture in another mode; where that has transparency, a gradient of it."""
    from PIL import Image

    if mode == "I;16":
        return Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257 // 2 + 300)
    if mode == "F":
        return Image.fromarray(np.asarray(picture.convert("L")).astype(np.float32) / 255)
    if mode in ("RGBA", "LA"):
        picture = picture.convert(mode)
        picture.putalpha(Image.linear_gradient("L").resize(picture.size))
        return picture
    return picture.convert(mode)


def models() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and making of every model: method, features, settings."""
    for method in CLASSICAL:
        yield f"{method} on gist", {"name": method, "features": "gist"}
    yield "itq on pixels@32", {"name": "itq", "features": "pixels@32"}
    for network in ("mobilenetv2@224", "efficientnet-lite0@224", "mobilenetv2@96"):
        for method in ("itq", "unsupervised"):
            yield f"{method} on {network}", {"name": method, "features": network}
    yield "nested on mobilenetv2@96", {"name": "nested", "features": "mobilenetv2@96", "iterations": 20}
    yield "nested on gist", {"name": "nested", "features": "gist", "iterations": 20}
    pixels = {"features": "pixels", "iterations": 10, "classes_per_batch": 5, "images_per_class": 4}
    for method in DEEP:
        yield f"{method}, paper-net at 32", {"name": method, "input_size": 32, **pixels}
    for network in ("paper-net", "paper-net+recipe", "small-net"):
        yield f"bs-drsch, {network} at 64", {"name": "bs-drsch", "network": network, **pixels}
    for network in ("mobilenetv2", "efficientnet-lite0"):
        fine = {"name": "nested", "network": network, "input_size": 96}
        yield f"nested, {network} fine-tuned at 96", fine | pixels | {"iterations": 2}


def fit(folder: Path) -> None:
    """Fit and save each model that is not there yet, and a copy of the bundled one."""
    import bitscale as bs
    from bitscale.data.images import ArrayImages

    try:
        from bitscale.data.labelled import Labelled
    except ImportError:  # before the rooms of docs/architecture.md
        from bitscale.data.splits import Labelled

    folder.mkdir(parents=True, exist_ok=True)
    images, labels = mirflickr()
    rows = np.arange(N_TRAIN)
    rows = rows[np.bincount(labels[rows], minlength=14)[labels[rows]] >= LEAST]
    train = Labelled(ArrayImages(np.ascontiguousarray(images[rows])), labels[rows], tuple(map(str, range(14))))
    for title, how in models():
        path = folder / f"{title}.safetensors"
        if not path.exists():
            print(title, flush=True)
            bs.make_hasher(n_bits=48, seed=1, **how).fit(train).save(path)
    bs.load_hasher("fashion-mnist").save(folder / "fashion-mnist, as bundled.safetensors")


def encode(folder: Path, pictures: Path, out: Path) -> None:
    """The pixels, codes and relaxed values of every picture under every model of a folder."""
    import bitscale as bs

    try:
        from bitscale.pictures.workers import decode_files
    except ImportError:  # before the rooms of docs/architecture.md
        from bitscale.data.workers import decode_files

    paths = [str(path) for path in sorted(pictures.iterdir())]
    decoded: dict[Any, Any] = {}
    arrays: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        hasher: Any = bs.load_hasher(path)
        form = hasher.picture_form
        if form not in decoded:
            decoded = {form: np.stack([picture.pixels for picture in decode_files(paths, form, workers=1)])}
        codes = hasher.encode(decoded[form])
        title = path.stem
        arrays[f"{title}|pixels"] = decoded[form]
        arrays[f"{title}|codes"] = codes.packed if hasher.binary else codes.values
        if hasher.binary:
            arrays[f"{title}|relaxed"] = np.asarray(hasher.relax(decoded[form]).values)
            arrays[f"{title}|weights"] = np.asarray(codes.bit_weights, float)
        print(title, flush=True)
    np.savez(out, **arrays)


def compare(old: Path, new: Path, out: Path | None = None) -> int:
    """Print a row a model, and write all rows to `out`; 1 where any differs."""
    ours, theirs = np.load(new), np.load(old)
    differ, rows = 0, []
    print(f"{'model':45} pictures with other pixels | codes; bits | relaxed, most by")
    for title in dict.fromkeys(key.partition("|")[0] for key in theirs.files):
        pixels = _rows_that_differ(theirs[f"{title}|pixels"], ours[f"{title}|pixels"])
        before, after = theirs[f"{title}|codes"], ours[f"{title}|codes"]
        codes = _rows_that_differ(before, after)
        bits = int(np.unpackbits(before ^ after).sum()) if before.dtype == np.uint8 else 0
        relaxed, most = codes, float(np.abs(before.astype(float) - after).max())
        if f"{title}|relaxed" in theirs:
            before, after = theirs[f"{title}|relaxed"], ours[f"{title}|relaxed"]
            relaxed, most = _rows_that_differ(before, after), float(np.abs(before - after).max())
            differ += int((theirs[f"{title}|weights"] != ours[f"{title}|weights"]).any())
        differ += bool(pixels or codes or relaxed)
        rows.append({"model": title, "pictures": len(before), "other_pixels": pixels, "other_codes": codes,
                     "other_bits": bits, "other_relaxed": relaxed, "relaxed_most_by": most})  # fmt: skip
        print(f"{title:45} {pixels:6} | {codes:6}; {bits:5} | {relaxed:6}, {most:.2g}")
    if out is not None:
        from bitscale.paper.surroundings import machine, versions

        about = {"machine": machine(), "versions": versions(), "models": rows}
        out.write_text(json.dumps(about, indent=1) + "\n")
    print("all equal" if not differ else f"{differ} differ")
    return int(differ > 0)


def _rows_that_differ(before: Any, after: Any) -> int:
    return int((before != after).reshape(len(before), -1).any(axis=1).sum())


def main() -> int:
    """Run one of the four steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("pictures", "models", "encode", "compare"))
    parser.add_argument("paths", type=Path, nargs="+")
    given = parser.parse_args()
    steps = {"pictures": draw, "models": fit, "encode": encode, "compare": compare}
    return steps[given.step](*given.paths) or 0  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
