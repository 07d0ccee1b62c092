"""Where images came from, kept through splitting, taking and model files; and what is refused because of it."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.data import load_array, load_folder, read_array
from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Labelled
from bitscale.data.origin import Origin, check_apart
from bitscale.data.split import split_parts, split_pool
from bitscale.errors import CorruptFile, InputError
from tests.hashers.clusters import NAMES, features


def pool(n=60_000):
    return Labelled(ArrayImages(np.zeros((n, 1, 1), np.uint8)), np.arange(n) % 10, NAMES)


SPLITS = {
    (protocol, seed): split_pool("set", protocol, pool(), seed=seed)
    for protocol in ("P0", "P0-db", "C1", "C2")
    for seed in (0, 1)
}


ALIKE = {("P0", "P0-db"), ("P0-db", "P0")}
PAIRS = [(trained, asked) for trained in SPLITS for asked in SPLITS]
APART = [(t, a) for t, a in PAIRS if t[1] == a[1] and (t[0] == a[0] or (t[0], a[0]) in ALIKE)]


@pytest.mark.parametrize(("trained", "asked"), APART)
def test_splits_drawn_alike_share_no_image(trained, asked):
    train, query = SPLITS[trained].train, SPLITS[asked].query
    assert not np.intersect1d(train.images.rows, query.images.rows).size
    assert check_apart(train.origin, query.origin) == ""


@pytest.mark.parametrize(("trained", "asked"), [pair for pair in PAIRS if pair not in APART])
def test_splits_drawn_otherwise_are_refused_with_the_cure(trained, asked):
    with pytest.raises(InputError, match=f"--protocol {trained[0]} --split-seed {trained[1]}"):
        check_apart(SPLITS[trained].train.origin, SPLITS[asked].query.origin)


def test_official_parts_are_the_same_for_every_seed():
    small = pool(20)
    parts = [split_parts("set", "P0", small, small, seed=seed, drawn=False) for seed in (0, 1)]
    assert check_apart(parts[0].train.origin, parts[1].query.origin) == ""
    drawn = split_pool("set", "C1", pool(), seed=0)
    with pytest.raises(InputError, match="official parts"):
        check_apart(parts[0].train.origin, drawn.query.origin)


def test_the_sample_is_a_part_of_fashion_mnist():
    sample = bs.load_dataset("sample")
    official = Origin("fashion-mnist", "P0", None, "train")
    assert check_apart(official, sample.query.origin) == ""
    assert check_apart(sample.train.origin, official.of_part("query")) == ""
    with pytest.raises(InputError, match="fashion-mnist, C2"):
        check_apart(Origin("fashion-mnist", "C2", 0, "train"), sample.query.origin)
    assert check_apart(Origin("mnist", "P0", None, "train"), sample.query.origin) == ""


def test_what_is_not_known_is_said():
    known = Origin("set", "P0", 0, "train")
    assert "not recorded: queries may be among them" in check_apart(None, known.of_part("query"))
    assert "where these queries came from is not recorded" in check_apart(known, None)
    changed = Origin("own", "P0", 0, "train", "aa")
    assert "before it changed" in check_apart(changed, Origin("own", "P0", 0, "query", "bb"))
    for part in ("query", "all"):
        with pytest.raises(InputError, match="Train a model on the training part"):
            check_apart(known.of_part(part), known.of_part("query"))


def test_taking_rows_keeps_the_origin():
    split = bs.load_dataset("sample")
    assert split.train.take(np.arange(5)).origin == split.train.origin == Origin("sample", "P0", None, "train")
    assert split.database.origin.part == "query"
    assert bs.load_dataset("sample", protocol="P0-db").database.origin.part == "train"


def test_own_data_is_told_from_other_data_of_its_name(tmp_path):
    part = features(60, seed=1)
    origins = []
    for folder, vectors in (("a", part.images), ("b", part.images), ("c", part.images[::-1])):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "own.npy", vectors)
        np.save(tmp_path / "labels.npy", part.labels)
        origins.append(load_array(tmp_path / folder / "own.npy", labels=tmp_path / "labels.npy").train.origin)
    assert origins[0] == origins[1] != origins[2]
    assert read_array(tmp_path / "a" / "own.npy").origin.part == "all"
    with pytest.raises(InputError, match="own, all of it"):
        check_apart(read_array(tmp_path / "a" / "own.npy").origin, origins[0].of_part("query"))


def test_a_folder_without_labels_is_the_same_folder(tmp_path):
    from PIL import Image

    from bitscale.data.sets.folder import unlabelled_folder

    for i in range(12):
        (tmp_path / "own" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4, 3), 9 * i, np.uint8)).save(tmp_path / "own" / "ab"[i % 2] / f"{i}.png")
    split, all_of_it = load_folder(tmp_path / "own"), unlabelled_folder(tmp_path / "own")
    assert check_apart(split.train.origin, split.query.origin) == ""
    with pytest.raises(InputError, match="all of it"):
        check_apart(all_of_it.origin, split.query.origin)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["itq", "nested"])
def test_model_files_carry_it_outside_the_fingerprint(name, tmp_path):
    part = features(60, seed=1)
    quick = {"iterations": 2, "classes_per_batch": 3, "images_per_class": 3} if name == "nested" else {}
    known = Labelled(part.images, part.labels, part.label_names, Origin("set", "P0", 3, "train"))
    plain, hasher = (bs.make_hasher(name, n_bits=8, features="none", **quick).fit(each) for each in (part, known))
    assert plain.origin is None
    assert plain.fingerprint == hasher.fingerprint
    hasher.save(tmp_path / "m")
    assert bs.load_hasher(tmp_path / "m").origin == known.origin
    plain.save(tmp_path / "plain")
    assert bs.load_hasher(tmp_path / "plain").origin is None
    tampered = (tmp_path / "m").read_bytes().replace(b'\\"split_seed\\": 3', b'\\"split_seed\\":"')
    (tmp_path / "m").write_bytes(tampered)
    with pytest.raises(CorruptFile):
        bs.load_hasher(tmp_path / "m")
