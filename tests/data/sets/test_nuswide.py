from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitscale.data import load_dataset
from bitscale.data.sets import nuswide
from bitscale.errors import DataError
from bitscale.evaluation import Report, evaluate
from bitscale.hashers import make_hasher
from bitscale.hashers.card import model_card

N = 400


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """81 labels on 400 images; label i is on ever fewer images, the last 40 images have rare labels only."""
    monkeypatch.setattr(nuswide, "QUERIES_PER_LABEL", 4)
    base = tmp_path / "nus-wide"
    for folder in ("ImageList", "Groundtruth/AllLabels", "Flickr/a", "Flickr/b"):
        (base / folder).mkdir(parents=True)
    names = [f"{'ab'[i % 2]}\\{i:04d}.jpg" for i in range(N)]
    (base / nuswide.LIST).write_text("\r\n".join(names) + "\r\n")
    tiny = Image.new("RGB", (3, 2), (9, 9, 9))
    for name in names:
        tiny.save(base / "Flickr" / name.replace("\\", "/"))
    rng = np.random.default_rng(0)
    for i in range(81):
        ones = np.zeros(N, int)
        if i < 21:
            ones[rng.permutation(N - 40)[: 200 - 5 * i]] = 1
        else:
            ones[rng.permutation(N)[:3]] = 1
        text = "\n".join(map(str, ones)) + "\n"
        (base / nuswide.LABELS / f"Labels_c{i:02d}.txt").write_text(text)
    return tmp_path


def test_the_21_most_frequent_labels_and_queries_for_each(root: Path) -> None:
    split = load_dataset("nus-wide", root)
    assert split.query.label_names == tuple(f"c{i:02d}" for i in range(21))
    assert len(split.query) == 21 * 4
    assert split.query.labels.sum(axis=0).min() >= 4
    assert split.database is split.query
    assert len(split.train) + len(split.query) <= N - 40
    assert split.train.labels.any(axis=1).all()
    n = len(split.train) + len(split.query)
    assert split.note == f"{n} images carry one of the 21 labels; the paper counts 195,969."


@pytest.mark.slow
def test_the_count_is_said_in_report_and_card(root: Path) -> None:
    split = load_dataset("nus-wide", root)
    hasher = make_hasher("lsh", n_bits=8, features="pixels@8")
    hasher.fit(split.train)
    report = evaluate(hasher, split, metrics="map")
    assert "the paper counts 195,969" in " ".join(str(report).split())
    assert Report.from_json(report.to_json()).note == split.note
    assert split.note in model_card(hasher, split)
    assert split.train.images[0].shape == (2, 3, 3)


def test_p0_db(root: Path) -> None:
    split = load_dataset("nus-wide", root, "P0-db")
    assert split.database is split.train
    assert split.top == 50_000
    assert load_dataset("nus-wide", root).top is None


def test_bad_files(root: Path) -> None:
    base = root / "nus-wide"
    labels = base / nuswide.LABELS / "Labels_c05.txt"
    good = labels.read_text()
    labels.write_text(good + "0\n")
    with pytest.raises(DataError, match=r"Labels_c05.*400.*401"):
        load_dataset("nus-wide", root)
    labels.write_text("7" + good[1:])
    with pytest.raises(DataError, match="0 or 1"):
        load_dataset("nus-wide", root)
    labels.unlink()
    with pytest.raises(DataError, match=r"80 of 81.*ask its owners"):
        load_dataset("nus-wide", root)
    labels.write_text(good)
    listing = base / nuswide.LIST
    names = listing.read_text()
    listing.write_text(names.replace("a\\0000.jpg", "..\\0000.jpg"))
    with pytest.raises(DataError, match="outside"):
        load_dataset("nus-wide", root)
    listing.write_text(names)
    (base / "Flickr" / "a" / "0000.jpg").unlink()  # one that is used: some have rare labels only
    with pytest.raises(DataError, match=r"1 of .* images of NUS-WIDE are not"):
        load_dataset("nus-wide", root)
