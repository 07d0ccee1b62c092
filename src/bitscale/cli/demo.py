"""bitscale demo: search generated codes at several lengths, and look at the clock."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import bitscale as bs

LENGTHS = (64, 32, 16, 8)


def demo(
    n: Annotated[int, typer.Option("--items", min=1, help="How many codes to generate.")] = 1_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Build an index of generated 64-bit codes, and search it with 64, 32, 16 and 8 bits, exactly.

    Nothing is trained and nothing is downloaded: the codes are 100 clusters with one bit in ten flipped.
    """
    console = Console(stderr=True, quiet=as_json)
    with console.status(f"making {n:,} codes"):
        codes, queries = generated(n)
    with console.status("building the index"):
        start = time.perf_counter()
        index = bs.ExactIndex(codes)
        built = time.perf_counter() - start
    rows = [measure(index, codes, queries, bits) for bits in LENGTHS]
    if as_json:
        typer.echo(json.dumps({"items": n, "build_seconds": built, "searches": rows}))
        return
    table = Table(title=f"{n:,} codes, one index, built in {built:.2f} s", title_justify="left")
    for title in ("bits", "one query", "NumPy tables", "same answer", "nearest ids"):
        table.add_column(title, justify="right")
    for row in rows:
        same = "yes" if row["same"] else "NO"
        times = f"{row['ours_ms']:.3f} ms", f"{row['numpy_ms']:.1f} ms"
        table.add_row(str(row["bits"]), *times, same, " ".join(map(str, row["ids"][:3])))
    out = Console()
    out.print(table)
    out.print("NumPy tables: the paper's method, a linear scan by 8-bit look-up tables.\n")
    out.print(
        "Next: [bold]bitscale info[/bold] names the kernel in use, [bold]bitscale bench search --scale 0.1[/bold]"
    )
    out.print("compares with FAISS, and the README shows the same in Python with codes of your own.")


def generated(n: int) -> tuple[bs.Codes, bs.Codes]:
    """Clustered codes whose weights fall from 1 to e^-2, and ten queries of the same kind."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (100, 8), dtype=np.uint8)
    flips = np.packbits(rng.random((n + 10, 64), dtype=np.float32) < 0.1, axis=1)
    packed = centres[rng.integers(0, 100, n + 10)] ^ flips
    codes = bs.Codes.from_packed(packed, np.exp(-np.arange(64) / 32))
    return codes[:n], codes[n:]


def measure(index: bs.ExactIndex, codes: bs.Codes, queries: bs.Codes, bits: int) -> dict[str, Any]:
    """Time ten lone queries at one length, and check the first against the definition."""
    index.search(queries[:1], 5, bits=bits)  # the planner measures once
    start = time.perf_counter()
    hits = [index.search(queries[i], 5, bits=bits) for i in range(len(queries))]
    ours = (time.perf_counter() - start) / len(queries)
    start = time.perf_counter()
    distances = bs.hamming.distances(queries[:1], codes, bits=bits)[0]
    nearest = np.lexsort((np.arange(len(codes)), distances))[:5]
    numpy = time.perf_counter() - start
    found = hits[0].ids[0][hits[0].ids[0] >= 0]
    same = np.array_equal(found, nearest) and np.array_equal(hits[0].distances[0][: len(found)], distances[nearest])
    return {"bits": bits, "ours_ms": ours * 1e3, "numpy_ms": numpy * 1e3, "same": bool(same), "ids": found.tolist()}
