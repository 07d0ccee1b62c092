"""A real service and a real browser: the bundled pictures, Debian's chromium, axe-core."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.server.serving import running

TREE = Path(__file__).resolve().parents[3]
AXE = TREE / ".venv" / "axe" / "axe.min.js"  # from npm: see the Makefile
FLAGS = [
    "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
N = 120


def make_clothes(folder):
    """Some of the bundled pictures in folders by label, one of them twice, and a collection of them."""
    part = bs.load_dataset("sample").query
    pictures = folder / "clothes"
    for i in range(N):
        label = part.label_names[part.labels[i]].replace("/", "-")
        (pictures / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.squeeze(part.images[i])).save(pictures / label / f"{i:04d}.png")
    first = sorted(pictures.rglob("*.png"))[0]
    shutil.copy(first, first.with_name("again.png"))
    with bs.Collection.create(folder / "clothes.bsc", bs.load_hasher("fashion-mnist")) as made:
        how = {"labels": lambda path: [Path(path).parent.name], "metadata": lambda path: {"camera": len(path) % 2}}
        made.add(pictures, workers=1, **how)
    return folder / "clothes.bsc"


def make_dyed(folder):
    """A collection of codes under a model of kind and colour."""
    split = bs.load_dataset("sample-tinted")
    train = split.train.take(np.arange(200))
    colours = np.stack([train.images[i].mean((0, 1)) for i in range(200)]).astype(np.float32)
    part = bs.data.Labelled(colours, train.labels, train.label_names, attributes=train.attributes)
    quick = {"iterations": 20, "attributes": "kind,colour", "classes_per_batch": 4, "images_per_class": 6}
    hasher = bs.make_hasher("nested", n_bits=16, features="none", **quick).fit(part)
    with bs.Collection.create(folder / "dyed.bsc", hasher) as made:
        made.add_codes(hasher.encode(part.images))
    return folder / "dyed.bsc"


@pytest.fixture(scope="session")
def clothes_at(tmp_path_factory):
    """Where the collection of clothes is."""
    return make_clothes(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def dyed_at(tmp_path_factory):
    """Where the collection of dyed clothes is; a worker may come back to these tests after others."""
    return make_dyed(tmp_path_factory.mktemp("dyed"))


@pytest.fixture(scope="module")
def served(browser, clothes_at, dyed_at):
    """The address of a service with two collections; its marks come and go."""
    with running(clothes_at, dyed_at) as service:
        yield service.address


@pytest.fixture(scope="module")
def browser():
    """Chromium with a profile of its own; not for longer, since playwright's event loop stands in others' way."""
    program = os.environ.get("BITSCALE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        pytest.skip("chromium is not installed: apt-get install chromium")
    if not AXE.is_file():
        pytest.skip("axe-core is not in .venv/axe: install npm, then make setup")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@contextmanager
def page_of(browser, **settings):
    """A page that has met no error when it is closed."""
    settings.setdefault("viewport", {"width": 1360, "height": 900})
    context = browser.new_context(**settings)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.problems = []
    page.on("console", lambda told: page.problems.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    try:
        yield page
        assert page.problems == []
    finally:
        context.close()


@pytest.fixture
def page(browser):
    with page_of(browser) as made:
        yield made


def check_accessible(page):
    """axe-core finds nothing to complain of."""
    page.evaluate(AXE.read_text())  # by the debugger: the page's own policy forbids scripts of others
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []


def until(page, expression, arg=None):
    """Wait for a sign in the page; playwright's own way evaluates text, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {expression}")
