"""Training on persons: the recipe, the input's shape, what is kept of it, and a card that names nobody."""

from dataclasses import replace

import numpy as np
import pytest

import bitscale as bs
from bitscale.data.images import ArrayImages
from bitscale.data.people import People
from bitscale.errors import FileError, InputError
from bitscale.reid.evaluate import between_cameras, of_codes
from bitscale.reid.persons import split
from bitscale.reid.sources import load_people
from bitscale.reid.training import card, lessons, person_hasher, train_persons, write_card
from tests.reid.crops import SIZE, crop, cuhk03_folder, save

QUICK = {"iterations": 30, "input_size": 32, "input_width": 12, "classes_per_batch": 8, "images_per_class": 4}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    root = cuhk03_folder(tmp_path_factory.mktemp("crops"), persons=24)
    save(root / "labeled/train/0099_00.png", crop(99, 0, 0))
    return load_people(root)


@pytest.mark.slow
def test_unseen_persons_are_found(people, tmp_path):
    one = split(people, 0, splits=1, tested=8)
    hasher = person_hasher("nested", 16, **QUICK)
    dropped = train_persons(hasher, one.train, run=tmp_path / "run")
    assert dropped.single == 1
    assert hasher.input_shape == (3, 32, 12)
    codes = hasher.encode([one.test.images[i] for i in range(len(one.test))])
    there, back = between_cameras(one.test, of_codes(codes))
    assert min(there.rates[1], back.rates[1]) > 0.3  # chance is 1 in 8
    hasher.save(tmp_path / "m.safetensors")
    again = bs.load_hasher(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.encode([one.test.images[0]]).packed, codes.packed[:1])
    write_card(hasher, one.train, dropped, tmp_path / "m.md")
    text = (tmp_path / "m.md").read_text("utf-8")
    assert "Not for" in text
    assert "1 persons with a single picture were dropped" in text
    assert not [name for name in people.names if name in text]


@pytest.mark.slow
def test_a_training_is_kept_until_its_model_is_written(people, tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    settings = QUICK | {"iterations": 4}
    with pytest.raises(FileError):
        train_persons(person_hasher("nested", 8, **settings), people, out=tmp_path / "nowhere" / "m.safetensors")
    steps = []
    train_persons(person_hasher("nested", 8, **settings), people, out=tmp_path / "m.safetensors", progress=steps.append)
    assert not steps
    assert bs.load_hasher(tmp_path / "m.safetensors").n_bits == 8
    assert not list((tmp_path / "runs").iterdir())


def test_the_recipe_for_persons():
    nested, drsch = person_hasher("nested", 64), person_hasher("drsch", 128)
    assert nested.settings.size == drsch.settings.size == (128, 48)
    assert (nested.settings.classes_per_batch, nested.settings.images_per_class) == (40, 5)
    assert nested.settings.validation_by == "classes"
    assert nested.settings.proxy_classes == 1_000
    assert person_hasher("nested", 64, input_size=250, input_width=100).settings.size == (250, 100)


@pytest.mark.slow
def test_held_out_persons_choose_the_weights(people):
    hasher = person_hasher("nested", 8, **QUICK | {"iterations": 10}, validation_share=0.2)
    train_persons(hasher, people)
    assert any("validation_map" in line for line in hasher.history)
    assert "fine-tuned" not in card(hasher, people, train_persons(hasher, people))


@pytest.mark.slow
def test_backbones_take_rectangles():
    from bitscale.networks.layers import flat
    from bitscale.networks.paper import network_layers

    layers = list(flat(network_layers("mobilenetv2", (3, 128, 64), 16)))
    assert next(one.shape for one in reversed(layers) if len(one.shape) == 3) == (1280, 4, 2)
    with pytest.raises(InputError, match=r"multiples of 32\. Got 128x48"):
        network_layers("mobilenetv2", (3, 128, 48), 16)


def test_widths_that_make_no_sense():
    with pytest.raises(InputError, match="input_width is the width beside"):
        bs.make_hasher("nested", n_bits=8, input_width=48)
    with pytest.raises(InputError, match="input_width of 1 to 2048"):
        bs.make_hasher("nested", n_bits=8, input_size=48, input_width=4_096)
    with pytest.raises(InputError, match="erasing is a share"):
        bs.make_hasher("nested", n_bits=8, erasing=2.0)


@pytest.mark.slow
def test_a_network_is_taught_what_another_says(tmp_path):
    """The teacher's vectors say who it is; of the crops alone nothing could be learned in so few steps."""
    rng = np.random.default_rng(0)
    persons, cameras = np.repeat(np.arange(24), 4), np.tile([0, 0, 1, 1], 24)
    pixels = np.stack([crop(p, c, shot) for shot, (p, c) in enumerate(zip(persons, cameras, strict=True))])
    vectors = (rng.normal(size=(24, 16))[persons] + 0.1 * rng.normal(size=(96, 16))).astype(np.float32)
    people = People(ArrayImages(pixels), persons, cameras, tuple(map(str, range(24))), ("a", "b"), vectors=vectors)
    wanted = lessons(people, 16)
    assert wanted.shape == (96, 16)
    assert np.abs(wanted).max() <= 1
    quick = {"input_size": SIZE[0], "input_width": SIZE[1], "iterations": 60, "classes_per_batch": 12, "erasing": 0.0}

    def agreement(given, **how):
        hasher = person_hasher("nested", 16, **quick, **how)
        train_persons(hasher, given, run=tmp_path / str(len(list(tmp_path.iterdir()))))
        return (np.sign(hasher.relax(people.images).values) == np.sign(wanted)).mean(), hasher

    taught, hasher = agreement(people, teacher_weight=5.0)
    alone, untaught = agreement(replace(people, vectors=None))
    assert taught > 0.8 > alone
    assert hasher.bit_weights.min() > 0.8 * untaught.bit_weights.min()  # a lesson is about values, not their weights
    with pytest.raises(InputError, match="teacher"):
        lessons(replace(people, vectors=None), 16)
    with pytest.raises(InputError, match="as many values"):
        person_hasher("nested", 8, **quick).fit(replace(people.labelled(), taught=wanted))
