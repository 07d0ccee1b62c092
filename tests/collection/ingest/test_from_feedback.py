"""A network fine-tuned by marks: what was called right comes nearer than what was called wrong, the rest stays."""

import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.collection.ingest.from_feedback import fine_tuned
from bitscale.errors import InputError
from tests.cli.run import inside
from tests.collection.made import fill, hasher

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clothes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("feedback")
    part = bs.load_dataset("sample").query
    (folder / "clothes").mkdir()
    for i in range(60):
        Image.fromarray(np.squeeze(part.images[i])).save(folder / "clothes" / f"{i:02d}.png")
    with bs.Collection.create(folder / "clothes.bsc", bs.load_hasher("fashion-mnist")) as made:
        made.add(folder / "clothes", workers=1)
        yield made


def gap(model, part):
    """How much farther the wrong pictures are than the right ones, over the marks."""
    codes = model.encode(part.images)
    signs = codes.signs() * np.sqrt(codes.bit_weights)
    between = ((signs[:, None] - signs[None]) ** 2).sum(-1) / 4  # (60, 60)
    return sum(between[q][w].mean() - between[q][r].mean() for q, r, w in MARKS)


MARKS = [(0, [5, 6], [7, 8]), (10, [11], [12, 13]), (20, [21, 22], [23])]


def test_marks_move_what_they_speak_of(clothes, tmp_path):
    part = bs.load_dataset("sample").query.take(np.arange(60))
    for query, right, wrong in MARKS[:2]:
        clothes.mark(query, right, wrong)
    picture = (clothes.path.parent / "clothes" / f"{MARKS[2][0]:02d}.png").read_bytes()
    own = clothes.hasher.relax(part.images.take(np.array([20])))
    clothes.mark(own, MARKS[2][1], MARKS[2][2], picture=picture)
    clothes.mark(own, [30], [31])  # a query without a picture: of no use here
    tuned = fine_tuned(clothes, steps=20)
    assert tuned.fingerprint != clothes.hasher.fingerprint
    assert str(tuned.origin) == "fashion-mnist, P0, official parts, part train, then marked pictures"
    assert gap(tuned, part) > gap(clothes.hasher, part)
    changed = tuned.encode(part.images).signs() != clothes.hasher.encode(part.images).signs()
    assert changed.mean() < 0.2
    clothes.close()
    ran = inside("train", "--from-feedback", clothes.path, "--out", tmp_path / "m.safetensors", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["marks"] == 4
    assert bs.load_hasher(tmp_path / "m.safetensors").n_bits == 64


def test_what_there_is_nothing_to_learn_from(tmp_path):
    with bs.Collection.create(tmp_path / "lsh.bsc", hasher()) as made:
        fill(made, 5)
        with pytest.raises(InputError, match="fine-tunes networks"):
            fine_tuned(made)
    deep = bs.Collection.create(tmp_path / "deep.bsc", bs.load_hasher("fashion-mnist"))
    with deep as made, pytest.raises(InputError, match="no marks to learn from"):
        fine_tuned(made)
    assert inside("train", "--out", tmp_path / "m.safetensors").returncode == 2


def test_a_picture_that_was_replaced_since_teaches_nothing(tmp_path, monkeypatch):
    """What was called right or wrong is what the item holds, not what its file holds by now."""
    from bitscale.deep import fine_tune as module

    part = bs.load_dataset("sample").query
    (tmp_path / "in").mkdir()
    for i in range(8):
        Image.fromarray(np.squeeze(part.images[i])).save(tmp_path / "in" / f"{i}.png")
    taught = []
    monkeypatch.setattr(module, "fine_tune", lambda *given, **how: taught.append(given[2]) or given[0])
    with bs.Collection.create(tmp_path / "c.bsc", bs.load_hasher("fashion-mnist")) as made:
        made.add(tmp_path / "in", workers=1)
        made.mark(0, [1, 2], [3, 4])
        made.mark(5, [1], [4])
        for name, other in (("2", 7), ("5", 6)):
            Image.fromarray(np.squeeze(part.images[other])).save(tmp_path / "in" / f"{name}.png")
        fine_tuned(made, steps=1)
    [[group]] = taught  # nobody asks for what the second query held
    assert (len(group.right), len(group.wrong)) == (1, 2)
