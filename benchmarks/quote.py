"""Put measured numbers into the README, between its markers, and write the pages made of them; nobody types them.

python benchmarks/quote.py            rewrite README.md, pages of docs/, and the report with its figures
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bitscale.capacity.measured import measured, slope
from bitscale.capacity.plan import plans
from bitscale.paper import whole_plan
from bitscale.paper.persons import paper_rates
from bitscale.paper.report import PAGE, draw_figures, html, markdown
from bitscale.reid.table import PAGE as PERSONS_PAGE
from bitscale.reid.table import PLAN, lines, page, second_track
from quote_engines import engines_table

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "flat": "FAISS IndexBinaryFlat (unweighted)",
    "fastscan": "FAISS IndexPQFastScan + re-rank",
    "multihash": "FAISS IndexBinaryMultiHash (unweighted)",
    "pq": "FAISS IndexPQ",
    "numpy": "NumPy 8-bit tables (the paper's method)",
}
KINDS = {"random": "random codes", "c100-10": "100 clusters, 10 % flips", "c10-0.5": "10 clusters, 0.5 % flips"}
LONG_KINDS = {**KINDS, "c100-25": "100 clusters, 25 % flips"}


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
        f"{cold_sentence(results)} "
        f"{at['cpu']}, {at['kernel']} kernel, faiss {at['faiss']}."
    )
    return "\n".join([*lines, "", note, *long_table(results), *huge_sentences(results)])


def long_table(results: dict) -> list[str]:
    """Milliseconds a query on long codes, and how many times slower IndexBinaryFlat is."""
    rows = {(row["codes"], row["n_bits"]): row for row in results.get("long", [])}
    lengths = sorted({n_bits for _, n_bits in rows})
    if not rows:
        return []
    head = "| long codes, 1M, k=10, one query | " + " | ".join(f"{n} bits" for n in lengths) + " |"
    lines = ["", head, "|---|" + "---|" * len(lengths)]
    for kind in dict.fromkeys(kind for kind, _ in rows):
        cells = [rows[kind, n] for n in lengths]
        shown = [f"{c['seconds_per_query']['bitscale'] * 1e3:.2f} ms, {c['ratio']:.1f}x" for c in cells]
        lines.append(f"| {LONG_KINDS[kind]} | " + " | ".join(shown) + " |")
    where = ", ".join(dict.fromkeys(row["machine"]["cpu"] for row in rows.values()))
    return [*lines, "", f"Times beside IndexBinaryFlat's, in the same way, on {where}."]


def huge_sentences(results: dict) -> list[str]:
    """100M codes, and what a lone query costs beside its search."""
    told = []
    for row in results.get("huge", []):
        ours, p99 = row["median_seconds"]["bitscale"] * 1e3, row["p99_seconds"] * 1e3
        told.append(
            f"{row['n'] / 1e6:g}M codes in 1,000 clusters with 12.5 % flips: {ours:.2f} ms in the median of "
            f"{row['queries']:,} queries, IndexBinaryFlat takes {row['ratio']:.0f}x; 99th percentile {p99:.1f} ms; "
            f"built in {row['build_seconds']:.0f} s by two threads."
        )
    for row in results.get("lone", []):
        more = row["more_microseconds"]
        told.append(f"Of {row['n'] / 1e6:g}M, a query alone takes {more:.0f} us more than one of a hundred together.")
    return ["", " ".join(told)] if told else []


def cold_sentence(results: dict) -> str:
    """What is left of the lead where the passes of other methods have just filled the caches."""
    rows = [r for r in results["peers"] if r["codes"] in KINDS and r["k"] == 10 and r["batch"] == 1]
    cold = ", ".join(f"{r['cold_ratio']['flat']:.0f}x ({r['n'] / 1e6:g}M, {KINDS[r['codes']]})" for r in rows)
    return f"Cold, right after all the other methods ran, IndexBinaryFlat takes {cold}."


LENGTHS = (16, 32, 64)


def baselines_page(folder: Path) -> str:
    """docs/baselines.md: what is ours to explain about the classical methods, beside another implementation."""
    lines = [
        "# The classical methods beside faiss",
        "",
        "Generated from `results/baselines/faiss.json` by `benchmarks/quote.py`; `python benchmarks/faiss_methods.py`",
        "measures it. MNIST, pixels, protocol P0, tie-expected MAP in percent. The seven methods beside the paper's",
        "tables are in [paper.md](paper.md). Other numbers of labelled images, tried once, are in `results/baselines`.",
        "",
    ]
    return "\n".join([*lines, *faiss_section(json.loads((folder / "faiss.json").read_text()))]) + "\n"


def faiss_section(faiss: dict) -> list[str]:
    """Beside faiss: LSH bit by bit, ITQ and its loss."""
    bits_apart = sum(faiss["lsh"].values())
    lines = [
        f"LSH, given faiss's matrix and centring: {bits_apart} differing bits at 16, 32 and 64 bits.",
        "",
        "ITQ differs, and for a reason. With B'V = U D W' the rotation that minimises the quantisation loss is W U'",
        "(Gong and Lazebnik; orthogonal Procrustes). The step faiss takes from a given start equals U W instead (to",
        "2e-8, up to the signs of the SVD), and its final loss is higher at every seed. Our loop with that step in",
        "place of the right one falls by as much; the signs of an SVD are arbitrary, so it differs from faiss by a few",
        "points at single seeds. Every row is the mean over five seeds, the last two the range of differences by seed.",
        "",
        "| ITQ, MAP | " + " | ".join(f"{bits} bits" for bits in LENGTHS) + " |",
        "|---|" + "---|" * len(LENGTHS),
    ]
    rows = {
        "ours, own seeds": "own_seeds",
        "ours, from faiss's start": "same_start",
        "faiss": "faiss",
        "ours with faiss's step": "same_start_faiss_update",
        "loss, ours from faiss's start": "same_start_loss",
        "loss, faiss": "faiss_loss",
    }
    for title, key in rows.items():
        means = [sum(run[key] for run in faiss["itq"][str(b)]) / len(faiss["itq"][str(b)]) for b in LENGTHS]
        digits = 3 if "loss" in key else 1
        lines.append(f"| {title} | " + " | ".join(f"{mean:.{digits}f}" for mean in means) + " |")
    for title, key in (
        ("ours from faiss's start, minus faiss", "same_start"),
        ("ours with its step, minus faiss", "same_start_faiss_update"),
    ):
        apart = [[run[key] - run["faiss"] for run in faiss["itq"][str(b)]] for b in LENGTHS]
        lines.append(f"| {title} | " + " | ".join(f"{min(d):+.1f} to {max(d):+.1f}" for d in apart) + " |")
    return lines


def encode_table(found: dict) -> str:
    """onnxruntime and torch on trained models."""
    lines = [
        "| trained model | bits that differ | largest value among them | one image |",
        "|---|---|---|---|",
    ]
    for row in found["models"]:
        what = f"{row['dataset']}, {row['model']['method']}, {row['model']['network']}"
        differ = f"{row['bits that differ']} of {row['in so many']:,}"
        faster = f"{row['times faster, one image']:.1f}x faster"
        lines.append(f"| {what} | {differ} | {row['largest value among them']:.1e} | {faster} |")
    return "\n".join(lines)


def capacity_table() -> str:
    """The plan from 1M to 10B codes."""
    lines = [
        "| codes | engine | memory | disk | machines | cores | a query | p99 | core time | a million queries | basis |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in plans():
        sizes = f"{row.memory_bytes / 1e9:.3g} GB | {row.disk_bytes / 1e9:.3g} GB | {row.machines} | {row.cores}"
        times = " | ".join(shown(s) for s in (row.query_seconds, row.p99_seconds, row.core_seconds_a_query))
        cost = f"{row.cost_a_million_queries:.3g}"
        lines.append(f"| {row.items / 1e6:,.0f}M | {row.engine} | {sizes} | {times} | {cost} | {row.basis} |")
    told = []
    for name in ("embedded", "postgres", "milvus"):
        points = measured().get(name, {}).get("points", [])
        if points:
            sizes = ", ".join(point_told(p) for p in points)
            told.append(f"{name} {sizes} (power {slope(name).power:.2f})" if name == "embedded" else f"{name} {sizes}")
    if "ray" in measured():
        told.append(f"one call of a Ray actor {shown(measured()['ray']['call_seconds'])}")
        for p in measured()["ray"].get("points", []):
            told.append(f"an index of {p['shards']} shards on one machine {point_told(p)}")
    return "\n".join([*lines, "", f"Measured: {'; '.join(told)}."])


def point_told(point: dict) -> str:
    """One measured point in words."""
    batched = f" ({shown(point['batched'])} of a core's work)" if "batched" in point else ""
    went = ", the server ahead of it" if "ahead" in point else ""
    beside = f" (beside a load of {point['load']:g}{went})" if point.get("load", 0) > 2 else ""
    return f"{point['n'] / 1e6:g}M in {shown(point['seconds'])}{batched}{beside}"


def large_sentences(found: dict) -> str:
    """What was built within a limit, and searched."""
    told = []
    for row in found["rows"]:
        text = f"{row['n'] / 1e6:g}M codes"
        if "build_seconds" in row:
            text += f", built within {row['memory'] / 1e9:g} GB in {row['build_seconds']:.0f} s"
        if "median_seconds" in row:
            text += f", {row['bytes'] / 1e9:.1f} GB with tables of {row['tables'][0]} bits: a query takes "
            text += f"{shown(row['median_seconds'])} in the median, {shown(row['p99_seconds'])} at the 99th percentile"
        if "checked_queries" in row:
            text += f"; {row['checked_queries']} queries {'equal' if row['equal_to_scan'] else 'DIFFER FROM'} a scan"
        told.append(f"- {text}.")
    return "\n".join(told)


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def between(text: str, name: str, new: str) -> str:
    """A page with what stands between the markers of a result replaced."""
    begin, end = f"<!-- begin results/{name} -->", f"<!-- end results/{name} -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{new}\n{end}", text, flags=re.S)


def cluster_sentences(results: dict) -> str:
    """How a cluster of two nodes encodes."""
    rate, seconds = results["pictures_a_second"], results["seconds"]
    lines = ["| pictures a second | |", "|---|---|"]
    lines += [f"| {name} | {rate[name]:.1f} ({seconds[name]:.0f} s) |" for name in rate]
    against = results["two nodes against one"], results["two nodes against two plain runs"]
    told = (
        f"{results['pictures']:,} JPEGs of {results['size'][0]} x {results['size'][1]}, {results['model']}; nodes and "
        f"plain runs of one core each. Two nodes encode {against[0]:.2f} times as fast as one, and {against[1]:.2f} "
        "times as fast as two plain `encode` side by side. Codes that differ from theirs: "
        f"{results['codes that differ from plain encode']['two nodes']}. {results['machine']['cpu']}."
    )
    return "\n".join([*lines, "", told])


def pages(root: Path) -> dict[Path, str]:
    """Every page with measured numbers, as it should be."""
    results, docs = root / "results", root / "docs"
    names = ("search.json", "encode.json", "large.json", "cluster.json", "engines.json")
    search, encode, large, cluster, engines = (json.loads((results / name).read_text()) for name in names)
    scaling = between((docs / "scaling.md").read_text(), "cluster.json", cluster_sentences(cluster))
    return {
        root / "README.md": between((root / "README.md").read_text(), "search.json", search_table(search)),
        docs / "engines.md": between((docs / "engines.md").read_text(), "engines.json", engines_table(engines)),
        docs / "baselines.md": baselines_page(results / "baselines"),
        docs / "learning.md": between((docs / "learning.md").read_text(), "encode.json", encode_table(encode)),
        docs / "scaling.md": between(
            between(scaling, "large.json", large_sentences(large)),
            "capacity.json",
            capacity_table(),
        ),
        docs / "paper.md": markdown(whole_plan(), results / "paper", "../results/paper/figures/"),
        results / "paper" / PAGE: html(whole_plan(), results / "paper"),
        results / "reid" / PERSONS_PAGE: persons_page(results / "reid"),
    }


def persons_page(folder: Path) -> str:
    """The table of persons."""
    return page(folder, list(lines(folder, paper_rates(), (*PLAN, *second_track(Path())))))


if __name__ == "__main__":
    draw_figures(whole_plan(), ROOT / "results" / "paper")
    for path, text in pages(ROOT).items():
        path.write_text(text)
