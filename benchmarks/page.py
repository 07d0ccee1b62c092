"""The page in a real browser: what its first load weighs, and how long a move of the bits slider takes at 100K items.

    python benchmarks/page.py --items 100000 --out results/page.json

From the slider's event until new results stand in the page, as the browser's own clock tells, for every length twice:
median and 95th percentile. The service, chromium and this script share the machine. Needs playwright and chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs

FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
MOVE = """bits => new Promise(done => {
  const slider = document.querySelector('#bits-slider'), status = document.querySelector('#status');
  const begun = performance.now();
  new MutationObserver((_, seen) => {
    if (!status.textContent.includes(`by ${bits} bits`)) return;
    seen.disconnect();
    done(performance.now() - begun);
  }).observe(status, { childList: true, characterData: true, subtree: true });
  slider.value = bits;
  slider.dispatchEvent(new Event('input'));
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("results/page.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "many.bsc", options.items)
        command = [sys.executable, "-m", "bitscale", "serve", str(path), "--port", "0"]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert service.stdout is not None
            found = measured(service.stdout.readline().split()[2])
        finally:
            service.terminate()
            service.wait()
    told = {"items": options.items, "cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1), **found}
    options.out.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))


def make(path: Path, n: int) -> Path:
    """Codes of the bundled sample, each with some bits flipped, so that they crowd as real ones do."""
    hasher = bs.load_hasher("fashion-mnist")
    codes = hasher.encode(bs.load_dataset("sample").train.images)
    rng = np.random.default_rng(0)
    packed = codes.packed[rng.integers(0, len(codes), n)] ^ np.packbits(rng.random((n, codes.n_bits)) < 0.03, axis=1)
    with bs.Collection.create(path, hasher) as made:
        made.add_codes(bs.Codes(packed, codes.bit_weights, codes.model))
        made.seal()
    return path


def measured(address: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        answers: list[Any] = []
        problems: list[str] = []
        page.on("response", lambda answer: answers.append(answer))
        page.on("console", lambda told: problems.append(told.text) if told.type == "error" else None)
        page.goto(address)
        page.wait_for_selector(".tile[data-id]")
        page.wait_for_load_state("networkidle")
        weight = sum(len(one.body()) for one in answers if "thumbnail" not in one.url)
        page.goto(f"{address}/?q=id:17")
        page.wait_for_selector("ol.grid .tile .strip")
        lengths = [bits for _ in range(2) for bits in range(60, 3, -4)]
        moves = []
        for bits in lengths:
            moves.append(page.evaluate(MOVE, bits))
            while f"of {bits} bits" not in (page.get_attribute("ol.grid .strip", "aria-label") or ""):
                page.wait_for_timeout(20)
        browser.close()
    return {
        "first_load_bytes": weight, "console_errors": len(problems),
        "slider_ms": {"median": round(float(np.median(moves)), 1), "p95": round(float(np.percentile(moves, 95)), 1),
                      "least": round(min(moves), 1), "moves": len(moves)},
    }  # fmt: skip


if __name__ == "__main__":
    main()
