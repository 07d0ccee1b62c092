"""Several attributes on the same bits: made-up vectors whose first half tells the kind and second half the colour."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import bitscale as bs
from bitscale.data.labelled import Attribute, Labelled
from bitscale.deep.attributes import shared_codes
from bitscale.errors import CorruptFile, InputError
from bitscale.hashers.model_file import KEY, read
from tests.cli.run import inside
from tests.hashers.clusters import NAMES

pytestmark = pytest.mark.slow  # all of them need a network trained
RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(2, 4, 8)) * 3


def made(n, seed):
    rng = np.random.default_rng(seed)
    kind, colour = rng.integers(0, 4, (2, n))
    x = np.concatenate([CENTRES[0][kind], CENTRES[1][colour]], axis=1) + rng.normal(size=(n, 16))
    attributes = (Attribute("kind", kind, NAMES[:4]), Attribute("colour", colour, NAMES[4:8]))
    return Labelled(x.astype(np.float32), kind, NAMES[:4], attributes=attributes)


TRAIN, QUERY = made(400, 1), made(100, 2)


def hasher(attributes="kind,colour", **options):
    given = {"iterations": 120, "classes_per_batch": 4, "images_per_class": 8, "attributes": attributes, **options}
    return bs.make_hasher("nested", n_bits=16, features="none", **given)


@pytest.fixture(scope="module")
def model():
    return hasher().fit(TRAIN)


def right(model, name, weights):
    """The share of the five nearest that agree in an attribute."""
    index = bs.ExactIndex(model.encode(TRAIN.images))
    ids = index.search(model.encode(QUERY.images), 5, weights=weights).ids
    return (TRAIN.attribute(name).labels[ids] == QUERY.attribute(name).labels[:, None]).mean()


def test_codes_times_shares_have_the_distances_of_divided_weights():
    codes, logits = torch.randn(5, 16), torch.randn(3, 16)
    parts = shared_codes(codes, logits)
    squares = sum((part[0] - part[1]).square().sum() for part in parts) / 3
    assert squares == pytest.approx(float((codes[0] - codes[1]).square().sum()), rel=1e-5)
    assert shared_codes(codes, None)[0] is codes


def test_what_is_emphasised_is_what_neighbours_agree_in(model):
    assert model.attributes == ("kind", "colour")
    for name, other in (("kind", "colour"), ("colour", "kind")):
        assert right(model, name, model.emphasise({name: 1.0})) > 0.9
        assert right(model, other, model.emphasise({name: 1.0})) < right(model, other, model.bit_weights)


def test_the_mean_over_attributes_is_what_a_search_without_emphasis_goes_by(model):
    assert np.allclose(model.attribute_weights.mean(0), model.bit_weights)


def test_a_file_keeps_the_attributes(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    back = bs.load_hasher(tmp_path / "m.safetensors")
    assert back.fingerprint == model.fingerprint
    assert np.array_equal(back.emphasise({"kind": 1, "colour": 0.2}), model.emphasise({"kind": 1, "colour": 0.2}))
    about, arrays = read(tmp_path / "m.safetensors")
    del arrays["attribute_logits"]
    save_file(arrays, tmp_path / "m.safetensors", metadata={KEY: json.dumps(about)})
    with pytest.raises(CorruptFile, match="attribute_logits"):
        bs.load_hasher(tmp_path / "m.safetensors")


def test_a_stopped_run_of_several_attributes_goes_on_to_the_same_model(tmp_path):
    def stop(progress):
        if progress.step == 5:
            raise KeyboardInterrupt

    whole = hasher(iterations=8).fit(TRAIN)
    with pytest.raises(KeyboardInterrupt):
        hasher(iterations=8).fit(TRAIN, run=tmp_path, progress=stop)
    again = hasher(iterations=8)
    assert again.fit(TRAIN, run=tmp_path).fingerprint == whole.fingerprint


def test_one_attribute_is_the_same_as_its_labels_alone():
    named, plain = hasher("colour", iterations=4).fit(TRAIN), hasher("", iterations=4).fit(TRAIN.seen_as("colour"))
    assert np.array_equal(named.encode(QUERY.images).packed, plain.encode(QUERY.images).packed)
    assert np.array_equal(named.emphasise({"colour": 2.0}), plain.bit_weights)
    assert named.attribute_weights.shape == (1, 16)
    assert plain.attribute_weights.shape == (0, 16)


def test_what_cannot_be_learned():
    with pytest.raises(InputError, match="They have: kind, colour"):
        hasher("kind,size").fit(TRAIN)
    with pytest.raises(InputError, match="each once"):
        hasher("kind,kind")
    with pytest.raises(InputError, match="only nested learns several attributes"):
        bs.make_hasher("drsch", n_bits=8, attributes="kind,colour")


def test_a_collection_is_searched_by_what_matters(model, tmp_path):
    folder = tmp_path / "vectors.bsc"
    with bs.Collection.create(folder, model) as made_up:
        made_up.add_codes(model.encode(TRAIN.images))
        query = model.encode(QUERY.images)
        found = made_up.search(query, 5, emphasis={"kind": 1.0})
        assert np.array_equal(found.ids, made_up.search(query, 5, weights=model.emphasise({"kind": 1.0})).ids)
        with pytest.raises(InputError, match="one of the two"):
            made_up.search(query, 5, emphasis={"kind": 1.0}, weights=model.bit_weights)
        with pytest.raises(InputError, match="Its attributes: kind, colour"):
            made_up.search(query, 5, emphasis={"size": 1.0})
        alone = made_up.search(3, 5, emphasis={"colour": 1.0}).ids[0].tolist()
    ran = inside("search", folder, "3", "-k", "5", "--emphasis", "colour=1", "--json")
    assert [match["id"] for match in json.loads(ran.stdout)["queries"][0]["matches"]] == alone
    assert inside("search", folder, "3", "--emphasis", "colour=-1").returncode != 0
