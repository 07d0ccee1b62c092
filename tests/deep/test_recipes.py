"""Recipes: what each sets for which data, what goes before it, and that `as-printed` follows eq-12."""

import numpy as np
import pytest
import torch
from PIL import Image

from bitscale.data.images import ArrayImages, ListImages
from bitscale.data.labelled import Labelled
from bitscale.deep.loss import distances, evaluate
from bitscale.deep.optimizer import make_optimizer
from bitscale.deep.parts import Parts, method_layers
from bitscale.deep.recipes import RECIPES, Recipe, Seen, look
from bitscale.deep.relations import relate
from bitscale.deep.train import objective_of
from bitscale.errors import InputError
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.picture_codes import encode_files
from bitscale.networks.paper import network_layers
from bitscale.networks.torch import HashNetwork, has_bfloat16
from tests.hashers.clusters import DEEP, features, images

QUICK = {"iterations": 2, "classes_per_batch": 3, "images_per_class": 3}
RNG = np.random.default_rng(0)


def pictures(n=30, channels=3, names=("cat", "dog", "cow")):
    pixels = RNG.integers(0, 256, (n, 32, 32, channels), np.uint8)
    return Labelled(ArrayImages(pixels), np.arange(n) % len(names), names)


def seen(part):
    return look(part.images, part.label_names, vectors=False)


def test_natural_pictures_are_in_colour_and_not_named_by_characters():
    assert seen(pictures()).natural
    assert not seen(pictures(channels=1)).natural
    assert not seen(pictures(names=tuple("0123456789"))).natural
    grey = np.repeat(RNG.integers(0, 256, (9, 32, 32, 1), np.uint8), 3, axis=3)
    assert not look(ArrayImages(grey), ("a coat", "a shoe"), vectors=False).natural
    assert not look(np.zeros((5, 7), np.float32), ("cat", "dog"), vectors=True).natural


@pytest.mark.parametrize("name", DEEP)
def test_ours_by_the_data(name):
    parts = make_hasher(name, n_bits=8).parts
    ours = Recipe("ours", {})
    cifar = ours.choose(parts, vectors=False, seen=Seen(50_000, (32, 32), natural=True))
    digits = ours.choose(parts, vectors=False, seen=Seen(60_000, (28, 28)))
    large = ours.choose(parts, vectors=False, seen=Seen(20_000, (64, 64), natural=True))
    vectors = ours.choose(parts, vectors=True, seen=Seen(50_000))
    assert cifar.settings["network"] == digits.settings["network"] == "paper-net+recipe"
    assert (cifar.settings["flip"], digits.settings["flip"]) == (True, False)
    assert cifar.settings["shift"] > digits.settings["shift"] > 0
    assert cifar.settings["iterations"] > large.settings["iterations"]
    assert not vectors.settings.keys() & {"flip", "shift", "shift_by", "input_size"}
    assert [why.partition("=")[0] for why in cifar.reasons] == ["shift", "flip", "iterations"]
    assert "50,000 images of 32x32" in cifar.reasons[-1]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["ours", "as-printed"])
def test_pictures_of_many_sizes_are_stretched_to_64_pixels(recipe, tmp_path):
    """As the paper does with NUS-WIDE: nothing is cropped, in training, encoding and reading of files alike."""
    items = [RNG.integers(0, 256, (40 + 5 * i, 90 - 3 * i, 3), np.uint8) for i in range(12)]
    part = Labelled(ListImages(items), np.arange(12) % 2, ("cat", "dog"))
    hasher = make_hasher("drsch", n_bits=16, recipe=recipe, **QUICK).fit(part)
    assert hasher.input_shape == (3, 64, 64)
    assert "input_size=64 (pictures of many sizes, stretched)" in hasher.chosen
    stretched = np.stack([np.asarray(Image.fromarray(item).resize((64, 64), Image.BILINEAR)) for item in items])
    assert hasher.encode(part.images) == hasher.encode(stretched)
    assert (hasher.picture_form.size, hasher.picture_form.middle) == ((64, 64), False)
    for i, item in enumerate(items):
        Image.fromarray(item).save(tmp_path / f"{i:02d}.png")
    files = encode_files(hasher, sorted(map(str, tmp_path.iterdir())), workers=1)
    assert [batch.codes for batch in files] == [hasher.encode(part.images)]
    again = make_hasher("drsch", n_bits=16, recipe=recipe, input_size=32, **QUICK).fit(part)
    assert (again.input_shape, again.settings.input_fit) == ((3, 32, 32), "middle")  # as a given size has always been


def test_ours_computes_in_bfloat16_where_the_processor_does():
    fast = Seen(50_000, (32, 32), natural=True, bfloat16=True)
    choice = Recipe("ours", {}).choose(Parts(), vectors=False, seen=fast)
    assert choice.settings["precision"] == "bfloat16"
    assert "precision=bfloat16 (this processor has it)" in choice.reasons
    given = Recipe("ours", {"precision": "float32"}).choose(Parts(), vectors=False, seen=fast)
    assert given.settings["precision"] == "float32"
    assert not any("precision" in why for why in given.reasons)
    hasher = make_hasher("drsch", n_bits=8, **QUICK).fit(pictures())
    assert hasher.settings.precision == ("bfloat16" if has_bfloat16() else "float32")
    assert make_hasher("drsch", n_bits=8, recipe="as-printed", **QUICK).fit(pictures()).settings.precision == "float32"


def test_the_margin_of_dsrh_is_that_of_eq_12_in_its_own_distance():
    hashers = {name: make_hasher(name, n_bits=64, recipe="ours") for name in ("dsrh", "drsch")}
    codes = torch.sign(torch.randn(6, 64, generator=torch.Generator().manual_seed(0)))
    of = {name: distances(codes, inner=hasher.parts.inner) for name, hasher in hashers.items()}
    factor = of["drsch"].max() / of["dsrh"].max()
    margins = {name: hasher.settings.margin_per_bit for name, hasher in hashers.items()}
    assert margins["drsch"] / margins["dsrh"] == factor == 4
    assert hashers["dsrh"].settings.hash_norm


def test_single_settings_go_before_a_recipe():
    hasher = make_hasher("nested", n_bits=8, flip=False, **QUICK).fit(pictures())
    assert (hasher.settings.flip, hasher.settings.shift, hasher.settings.iterations) == (False, 4, 2)
    assert [why.partition("=")[0] for why in hasher.chosen if "precision" not in why] == ["shift"]
    assert str(hasher.recipe) == "ours with classes_per_batch=3, flip=false, images_per_class=3, iterations=2"
    with pytest.raises(InputError, match=r"no recipe 'best'\. Known: ours, as-printed"):
        make_hasher("nested", n_bits=8, recipe="best")
    with pytest.raises(InputError, match="itq has no recipes"):
        make_hasher("itq", n_bits=8, recipe="ours")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", DEEP)
def test_every_recipe_trains_every_method(name, recipe):
    for part, kind in ((images(60, seed=1), "pixels"), (features(60, seed=1), "none")):
        hasher = make_hasher(name, n_bits=8, features=kind, recipe=recipe, **QUICK).fit(part)
        assert hasher.training.recipe.startswith(recipe)


def test_a_file_keeps_the_recipe_and_every_setting(tmp_path):
    hasher = make_hasher("drsch", n_bits=8, recipe="as-printed", **QUICK).fit(images(60, seed=1))
    hasher.save(tmp_path / "m")
    again = load_hasher(tmp_path / "m")
    assert (again.settings, again.training, again.fingerprint) == (hasher.settings, hasher.training, hasher.fingerprint)
    assert again.fit(images(60, seed=1)).fingerprint == hasher.fingerprint  # with the file's settings, all of them


def test_ours_is_the_default():
    plain, named = (make_hasher("drsch", n_bits=8, **more, **QUICK) for more in ({}, {"recipe": "ours"}))
    assert plain.fit(images(60, seed=1)).fingerprint == named.fit(images(60, seed=1)).fingerprint


@pytest.mark.parametrize(
    ("name", "setting", "why"),
    [
        ("dsch", {"laplacian_weight": 0.1}, "no Laplacian"),
        ("drsch", {"balance_weight": 0.1}, "balances bits"),
        ("euclidean", {"beta_end": 10.0}, "tanh-like"),
        ("drsch", {"scale_rate": 1.0}, "weigh 1"),
        ("drsch", {"proxy_weight": 1.0}, "nested"),
        ("drsch", {"backbone_rate": 0.1}, "not pretrained"),
        ("drsch", {"momentum": 0.5}, "optimizer=sgd"),
        ("nested", {"contrast_temperature": 0.5}, "contrast_weight is 0"),
        ("nested", {"proxy_rate": 2.0, "recipe": "as-printed"}, "proxy_weight is 0"),
        ("bs-drsch", {"laplacian_norm": "none", "laplacian_weight": 0.0}, "laplacian_weight is 0"),
        ("drsch", {"validation_by": "classes"}, "validation_share is 0"),
    ],
)
def test_a_setting_that_would_be_ignored_is_refused(name, setting, why):
    with pytest.raises(InputError, match=f"{name} would ignore {next(iter(setting))}.*{why}.*Leave it away"):
        make_hasher(name, n_bits=8, **setting)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"shift_by": "image", "recipe": "as-printed"}, "shift is 0"),
        ({"shift_by": "batch", "shift": 0}, "shift is 0"),
        ({"input_fit": "stretch"}, "taken as they are"),
        ({"teacher_weight": 2.0}, "no teacher"),
    ],
)
def test_a_setting_that_these_images_leave_idle_is_refused(setting, why):
    with pytest.raises(InputError, match=f"nested would ignore {next(iter(setting))}.*{why}"):
        make_hasher("nested", n_bits=8, **setting, **QUICK).fit(pictures())


def test_settings_for_pictures_are_refused_on_vectors():
    with pytest.raises(InputError, match="vectors, not from pictures"):
        make_hasher("nested", n_bits=8, features="none", flip=True)
    assert make_hasher("drsch", n_bits=8, optimizer="sgd", momentum=0.5).settings.momentum == 0.5
    assert make_hasher("drsch", n_bits=8, network="mobilenetv2", backbone_rate=0.1).settings.backbone_rate == 0.1


def literal_eq_12(codes, labels, drawn, weight):
    """eq-12 as printed, one drawn triplet and one pair of images after another."""
    margin = -codes.shape[1] / 2
    total = codes.new_zeros(())
    for i, p, n in drawn:
        nearer = ((codes[i] - codes[p]) ** 2).sum() - ((codes[i] - codes[n]) ** 2).sum()
        total = total + torch.maximum(nearer, nearer.new_tensor(margin))
    for i in range(len(codes)):
        for j in range(len(codes)):
            if i != j and labels[i] == labels[j]:  # tr(R L R^T) = 1/2 sum of S_ij |r_i - r_j|^2
                total = total + weight / 2 * ((codes[i] - codes[j]) ** 2).sum()
    return total


def triplets_drawn(labels, relations, n, seed):
    """The triplets that a generator of that seed draws, in the order in which the batch lists them."""
    listed = [
        (i, int(p), m)
        for i in range(len(labels))
        for p in relations.triplets[0].positives[i]
        for m in range(len(labels))
        if labels[m] != labels[i]
    ]
    return [listed[t] for t in np.random.default_rng(seed).choice(len(listed), n, replace=False, shuffle=False)]


@pytest.mark.parametrize("name", ["drsch", "bs-drsch"])
def test_the_printed_recipe_has_the_gradient_of_eq_12(name):
    """Every parameter, the weights of the bits too, up to one common factor 1/N."""
    n, beta, labels = 50, 40.0, torch.arange(12) % 3
    hasher = make_hasher(name, n_bits=8, recipe="as-printed", sampled_triplets=n)
    assert make_hasher(name, n_bits=8, recipe="as-printed").settings.sampled_triplets == 200_000
    torch.manual_seed(0)
    layers = method_layers(hasher.parts, hasher.settings, (6,), 8)
    network = HashNetwork(layers, (6,), hasher.parts.scale).double()
    batch, relations = torch.randn(12, 6).double(), relate(labels, dtype=torch.double)
    objective = objective_of(hasher.parts, hasher.settings)
    value = evaluate(network(batch, beta), relations, objective, np.random.default_rng(5))
    ours = torch.autograd.grad(n * value.loss, list(network.parameters()))
    drawn = triplets_drawn(labels, relations, n, 5)
    theirs = torch.autograd.grad(literal_eq_12(network(batch, beta), labels, drawn, 0.001), list(network.parameters()))
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected)
    assert 0.05 < value.active < 1


def test_the_printed_recipe_is_plain_gradient_descent():
    settings = make_hasher("bs-drsch", n_bits=8, recipe="as-printed").settings
    assert (settings.network, settings.beta_start, settings.beta_end) == ("paper-net", 2, 1000)
    network = HashNetwork(network_layers("paper-net", (6,), 8), (6,), "free")
    optimizer = make_optimizer(network, settings)
    assert isinstance(optimizer, torch.optim.SGD)
    for group in optimizer.param_groups:
        assert (group["momentum"], group["weight_decay"], group["multiple"]) == (0, 0, 1)
