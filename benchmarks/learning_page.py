"""docs/learning.md from results/deep: what was reached, how settings were chosen, what the weights are worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LENGTHS = (8, 16, 32, 64)
REACHED = {  # file: what it is, and what it is to reach at some lengths
    "mnist-nested-64-chosen.json": ("MNIST, `nested`, pixels", {8: 95.5, 16: 97.5, 32: 98.3, 64: 98.5}),
    "cifar10-nested-64-recipe-20000.json": ("CIFAR-10, `nested`, pixels", {8: 65.0, 64: 70.0}),
    "cifar10-nested-64-mobilenetv2-224-chosen.json": ("CIFAR-10, `nested`, frozen MobileNetV2", {8: 75.0, 64: 83.0}),
}
CHOICES = {
    "selection-mnist.json": "MNIST, `nested`",
    "selection-cifar10.json": "CIFAR-10, `nested`, pixels",
    "selection-cifar10-mobilenetv2.json": "CIFAR-10, `nested`, frozen MobileNetV2 at 224 pixels",
}


def learning_page(folder: Path) -> str:
    """The page; `folder` is results/."""
    deep = folder / "deep"
    lines = [
        "# What was learned, and how it was chosen",
        "",
        "Generated from `results/deep` and `results/encode.json` by `benchmarks/quote.py`. Everywhere: tie-aware",
        "expected MAP in percent, protocol P0, weighted ranking, one model for all lengths. Settings were chosen on",
        "training images kept back (below), and only then were these models scored on the queries.",
        "",
        "| one model, truncated | " + " | ".join(f"{k} bits" for k in LENGTHS) + " | minutes, one thread |",
        "|---|" + "---|" * (len(LENGTHS) + 1),
    ]
    lines += [reached_row(deep / name, *about) for name, about in REACHED.items()]
    lines += ["", "In brackets what was to be reached. Settings (all others are the defaults):", ""]
    lines += [f"- {REACHED[name][0]}: {settings_of(read(deep / name)['settings'])}" for name in REACHED]
    for name, title in CHOICES.items():
        lines += ["", *choice_table(title, read(deep / name))]
    lines += ["", *weights_section(read(deep / "weights.json"), read(deep / "selection-weights.json"))]
    return "\n".join([*lines, "", *encode_section(read(folder / "encode.json"))]) + "\n"


def read(path: Path) -> Any:
    """A result."""
    return json.loads(path.read_text())


def reached_row(path: Path, title: str, wanted: dict[int, float]) -> str:
    """One model at every length, the bars in brackets."""
    found = read(path)
    cells = [f"{found['map'][str(k)]['weighted']:.1f}" + (f" ({wanted[k]})" if k in wanted else "") for k in LENGTHS]
    return f"| {title} | " + " | ".join(cells) + f" | {found['train_seconds'] / 60:.0f} |"


def settings_of(settings: dict[str, Any]) -> str:
    """NAME=VALUE, with commas."""
    return ", ".join(f"`{name}={json.dumps(value)}`".replace('"', "") for name, value in settings.items()) or "defaults"


def choice_table(title: str, found: dict[str, Any]) -> list[str]:
    """All trials of a question and the best of them."""
    lengths, best = found["best"]["over bits"], found["best"]["trial"]
    shared = dict(set.intersection(*({(k, json.dumps(v)) for k, v in t["settings"].items()} for t in found["trials"])))
    common = {name: json.loads(value) for name, value in sorted(shared.items())}
    lines = [
        f"## Chosen on held-out training images: {title}",
        "",
        f"Score: {found['score']}. The best mean over {' and '.join(map(str, lengths))} bits was taken."
        + (f" All trials: {settings_of(common)}." if common else ""),
        "",
        "| trial | " + " | ".join(f"{k} bits" for k in lengths) + " | |",
        "|---|" + "---|" * (len(lengths) + 1),
    ]
    for i, trial in enumerate(found["trials"]):
        own = {name: value for name, value in trial["settings"].items() if name not in common}
        cells = " | ".join(f"{trial['map'][str(k)]:.1f}" for k in lengths)
        lines.append(f"| {settings_of(own)} | {cells} | {'**best**' if i == best else ''} |")
    notes = sorted({trial["note"] for trial in found["trials"] if "note" in trial})
    return [*lines, *(f"\n{note[0].upper()}{note[1:]}." for note in notes)]


def weights_section(found: dict[str, Any], trials: dict[str, Any]) -> list[str]:
    """Truncation by weight and at random."""
    mean = found["mean over seeds"]
    lines = [
        "## What the weights of a bit-scalable model are worth",
        "",
        f"`{found['method']}`, {found['n_bits']} bits, {found['dataset']}, {len(found['runs'])} seeds, settings: "
        f"{settings_of(found['settings'])}. The heaviest bits of each model against ten random subsets of its bits.",
        "",
        "| bits | heaviest | random subsets | best of them | heaviest, plain ranking |",
        "|---|---|---|---|---|",
    ]
    for k, row in mean["lengths"].items():
        cells = f"{row['heaviest']:.1f} | {row['random']:.1f} ± {row['random std']:.1f} | {row['random best']:.1f}"
        lines.append(f"| {k} | {cells} | {row['heaviest, plain']:.1f} |")
    lines += [
        f"| all | {mean['whole']:.1f} | | | |",
        "",
        "Trials on held-out training images (mean over their seeds; correlation is the mean absolute one between two",
        "of the 8 heaviest bits, and between any two). Taken was the one that beats random subsets at every length, of",
        "those trained as long as the final models:",
        "",
        "| settings | seeds | whole | 8 heaviest | 8 random | 16 heaviest | 16 random | correlation | better at |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for trial in trials["trials"]:
        m, runs = trial["mean over seeds"], trial["runs"]
        rows = [f"{m['lengths'][k][what]:.1f}" for k in ("8", "16") for what in ("heaviest", "random")]
        alike = [sum(run["mean |correlation| of bits"][k] for run in runs) / len(runs) for k in ("8", "64")]
        beaten = ", ".join(map(str, m["heaviest beat random at"]))
        cells = [settings_of(trial["settings"]), str(len(runs)), f"{m['whole']:.1f}", *rows]
        lines.append("| " + " | ".join(cells) + f" | {alike[0]:.2f}, {alike[1]:.2f} | {beaten} |")
    return lines


def encode_section(found: dict[str, Any]) -> list[str]:
    """onnxruntime and torch on trained models."""
    lines = [
        "## onnxruntime beside torch",
        "",
        "| trained model | bits that differ | largest value among them | one image |",
        "|---|---|---|---|",
    ]
    for row in found["models"]:
        what = f"{row['dataset']}, {row['model']['method']}, {row['model']['network']}"
        differ = f"{row['bits that differ']} of {row['in so many']:,}"
        faster = f"{row['times faster, one image']:.1f}x faster"
        lines.append(f"| {what} | {differ} | {row['largest value among them']:.1e} | {faster} |")
    return lines
