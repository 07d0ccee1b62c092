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


@pytest.mark.parametrize(("one", "other"), [("cifar100", "cifar20"), ("fashion-mnist", "sample-tinted")])
def test_the_same_images_under_another_name_are_the_same_images(one, other):
    """A draw by a hundred classes is not one by twenty, whatever its seed."""
    for first, second in ((one, other), (other, one)):
        official = Origin(first, "P0", None, "train")
        assert check_apart(official, Origin(second, "P0", None, "query")) == ""
        for trained, asked in (("C1", "C1"), ("C2", "C1")):
            with pytest.raises(InputError, match=f"on {first} with --protocol {trained} --split-seed 0"):
                check_apart(Origin(first, trained, 0, "train"), Origin(second, asked, 0, "query"))
        with pytest.raises(InputError, match=f"Evaluate it on {first} with --protocol C2 --split-seed 0"):
            check_apart(Origin(first, "C2", 0, "train"), Origin(second, "P0", None, "query"))


def test_a_part_of_mirflickr_is_of_mirflickr():
    with pytest.raises(InputError, match="on mirflickr-5000 with"):
        check_apart(Origin("mirflickr-5000", "P0", 0, "train"), Origin("mirflickr", "P0", 0, "query"))


def test_what_is_not_known_is_said():
    known = Origin("set", "P0", 0, "train")
    assert "not recorded: queries may be among them" in check_apart(None, known.of_part("query"))
    assert "where these queries came from is not recorded" in check_apart(known, None)
    changed = Origin("own", "P0", 0, "train", "aa")
    assert "before it changed" in check_apart(changed, Origin("own", "P0", 0, "query", "bb"))
    elsewhere = Origin("cifar10", "P0", 0, "train")
    for one, other in ((changed, elsewhere), (elsewhere, changed), (changed, Origin("mine", "P0", 0, "train", "bb"))):
        assert f"whether {other.dataset} holds some of that is not known" in check_apart(one, other.of_part("query"))
    marked = Origin("set", "P0", 0, "train", besides="marked pictures")
    assert Origin.from_dict(marked.to_dict()) == marked
    assert "learned from marked pictures as well" in check_apart(marked, known.of_part("query"))
    with pytest.raises(InputError, match="--split-seed 0"):
        check_apart(marked, Origin("set", "P0", 1, "query"))
    old = Origin("own", "P0", 0, "train", "aa")  # of a file that does not tell which rows were drawn
    assert "labels own was split" in check_apart(old, Origin("own", "P0", 0, "query", "aa.11"))
    with pytest.raises(InputError, match="--split-seed 0"):
        check_apart(old, Origin("own", "P0", 1, "query", "aa.11"))
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


def test_own_vectors_are_known_by_whatever_name_and_labels(tmp_path):
    """The queries that are drawn follow the labels: another set of them draws others, under the same seed."""
    part = features(60, seed=1)
    for name in ("own", "copy"):
        np.save(tmp_path / f"{name}.npy", part.images)
    for name, labels in (("a", part.labels), ("b", np.arange(60) % 4)):
        np.save(tmp_path / f"{name}.npy", labels)

    def split(name="own", labels="a", **how):
        return load_array(tmp_path / f"{name}.npy", labels=tmp_path / f"{labels}.npy", **how)

    trained = split().train
    assert check_apart(trained.origin, split("copy").query.origin) == ""
    assert check_apart(trained.origin, split(protocol="P0-db").query.origin) == ""
    for others in (split(labels="b"), split(query_share=0.5), split("copy", labels="b")):
        assert np.intersect1d(others.query.images.rows, trained.images.rows).size
        with pytest.raises(InputError, match="Evaluate it with the labels and the share of queries"):
            check_apart(trained.origin, others.query.origin)
    for name in ("own", "copy"):
        with pytest.raises(InputError, match="with --protocol P0 --split-seed 0, or"):
            check_apart(trained.origin, split(name, seed=1).query.origin)


def test_a_split_made_by_hand_is_said_to_be_one(tmp_path):
    part = features(60, seed=1)
    np.save(tmp_path / "own.npy", part.images)
    pool = read_array(tmp_path / "own.npy")
    train, query = pool.take(np.arange(40)), pool.take(np.arange(40, 60))
    assert str(train.origin) == "own, some of it"
    assert "some of it, taken by hand: queries may be among it" in check_apart(train.origin, query.origin)
    with pytest.raises(InputError, match="own, all of it"):
        check_apart(pool.origin, query.origin)


def test_a_folder_is_known_by_whatever_name_and_list(tmp_path):
    from PIL import Image

    names = [f"{'ab'[i % 2]}/{i}.png" for i in range(24)]
    for folder in ("own", "copy"):
        for i, name in enumerate(names):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((4, 4, 3), 9 * i, np.uint8)).save(tmp_path / folder / name)
    (tmp_path / "list.csv").write_text("file,labels\n" + "".join(f"{name},{name[0]}\n" for name in reversed(names)))
    trained = load_folder(tmp_path / "own").train
    assert check_apart(trained.origin, load_folder(tmp_path / "copy").query.origin) == ""
    listed = load_folder(tmp_path / "copy", labels=tmp_path / "list.csv")  # in another order: others are drawn
    assert listed.query.origin.content != trained.origin.content
    with pytest.raises(InputError, match="labels and the share"):
        check_apart(trained.origin, listed.query.origin)
    part = load_folder(tmp_path / "own", query_share=0.5).query.origin
    with pytest.raises(InputError, match="labels and the share"):
        check_apart(trained.origin, part)


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
