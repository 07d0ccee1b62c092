import pytest

from bitscale.deep.parts import method_layers
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError
from bitscale.hashers import make_hasher
from tests.hashers.clusters import DEEP, features


def test_beta_grows_geometrically_from_2_to_1000():
    settings = DeepSettings(iterations=101)
    assert settings.beta(0) == 2
    assert settings.beta(100) == pytest.approx(1000)
    assert settings.beta(50) == pytest.approx((2 * 1000) ** 0.5)


def test_rates():
    adam = DeepSettings(iterations=1001)
    assert adam.rate(300) == pytest.approx(1e-3, rel=1e-3)
    assert adam.rate(0) < 1e-4
    assert adam.rate(1000) < 1e-6
    assert DeepSettings(iterations=1001, network="paper-net+recipe").rate(300) == pytest.approx(2e-3, rel=1e-3)
    sgd = DeepSettings(iterations=1001, optimizer="sgd", learning_rate=0.1)
    assert sgd.rate(0) == 0.1
    assert sgd.rate(900) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"network": "vgg"}, {"optimizer": "lion"}, {"laplacian_norm": "pairs"}, {"laplacian": "ours"},
        {"iterations": 0}, {"beta_start": 0.0}, {"beta_end": 1.0}, {"learning_rate": -1.0}, {"shift": -1},
        {"shift_by": "pixel"}, {"scale_spread": 0.5}, {"scale_spread": float("inf")},
        {"weight_decay": float("nan")}, {"momentum": 1.0}, {"initial": "zeros"}, {"classes_per_batch": 0},
        {"proxy_temperature": 0.0}, {"proxy_weight": -1.0},
        {"contrast_temperature": 0.0}, {"contrast_weight": -1.0},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InputError, match=next(iter(wrong)).split("_")[0]):
        DeepSettings(**wrong)


def test_what_distinguishes_the_methods():
    settings = DeepSettings()
    parts = {name: make_hasher(name, n_bits=8).parts for name in DEEP}
    kinds = {name: [x.kind for x in method_layers(parts[name], settings, (1, 28, 28), 8)] for name in DEEP}
    assert kinds["drsch"] == kinds["dsch"]
    assert kinds["bs-drsch"] == [*kinds["drsch"], "weights"] == kinds["nested"]
    assert kinds["drsch"] == [*kinds["euclidean"], "tanh-like"]
    assert "beside" in kinds["dsrh"]
    assert {name for name in DEEP if parts[name].laplacian} == {"drsch", "bs-drsch", "nested"}


def test_a_later_setting_at_its_default_leaves_fingerprints_alone():
    part = features(60, seed=1)
    quick = {"n_bits": 8, "features": "none", "iterations": 2, "classes_per_batch": 3, "images_per_class": 3}
    assert make_hasher("nested", **quick, scale_spread=2).settings.scale_spread == 2
    plain = make_hasher("nested", **quick).fit(part)
    known = [*DeepSettings.__dataclass_fields__.values()]
    later = {
        "scale_spread", "shift_by", "input_size", "input_fit", "backbone_rate", "freeze_statistics", "momentum",
        "initial", "hash_norm", "proxy_weight", "proxy_rate", "proxy_temperature", "attributes", "precision",
        "proxy_classes", "erasing", "validation_by", "input_width", "teacher_weight",
        "contrast_weight", "contrast_temperature",
    }  # fmt: skip
    assert {field.name for field in known if field.metadata.get("later")} == later
    assert make_hasher("nested", **quick, initial="torch").fit(part).fingerprint == plain.fingerprint
    assert make_hasher("nested", **quick, initial="he").fit(part).fingerprint != plain.fingerprint
