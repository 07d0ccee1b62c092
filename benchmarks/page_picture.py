"""The page as documents show it: makes docs/page.png anew.

    python benchmarks/page_picture.py [--out docs/page.png] [--width 1360] [--height 900] [--dark] [--at "/?q=id:17"]

A shirt among 400 of the bundled sample's pictures, under the bundled model, at 32 of 64 bits. Needs playwright and
chromium. Other widths, themes and addresses are for looking at the page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

import bitscale as bs
from page import FLAGS

PICTURES, BITS = 400, 32
KIND = "Shirt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/page.png"))
    parser.add_argument("--width", type=int, default=1360)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--at", help="an address of the page, without its host")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place, shirt = make(Path(folder))
        with serving(place) as address:
            asked = options.at or f"/?q=id:{shirt}&bits={BITS}"
            show(address + asked, options.out, (options.width, options.height), options.dark)


def make(folder: Path) -> tuple[Path, int]:
    """A collection of pictures in folders by kind, and the id of a shirt."""
    part = bs.load_dataset("sample").query
    for row in range(PICTURES):
        kind = part.label_names[part.labels[row]].replace("/", "-")
        (folder / "clothes" / kind).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.squeeze(part.images[row])).save(folder / "clothes" / kind / f"{row:04d}.png")
    with bs.Collection.create(folder / "clothes.bsc", bs.load_hasher("fashion-mnist")) as made:
        made.add(folder / "clothes", labels=lambda path: [Path(path).parent.name])
        shirt = int(made.select(f"label={KIND}")[0])
    return folder / "clothes.bsc", shirt


@contextmanager
def serving(place: Path) -> Iterator[str]:
    """The address of a service."""
    command = [sys.executable, "-m", "bitscale", "serve", str(place), "--port", "0"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        yield service.stdout.readline().split()[2]
    finally:
        service.terminate()
        service.wait()


def show(address: str, out: Path, size: tuple[int, int], dark: bool) -> None:
    """A picture of the page, all that it loads included."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        scheme = "dark" if dark else "light"
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=str(out))
        browser.close()


if __name__ == "__main__":
    main()
