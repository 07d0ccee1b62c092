import pytest

from bitscale.deep.methods import METHODS, layers_of
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError


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
        {"weight_decay": float("nan")}, {"classes_per_batch": 0},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InputError, match=next(iter(wrong)).split("_")[0]):
        DeepSettings(**wrong)


def test_what_distinguishes_the_methods():
    settings = DeepSettings()
    kinds = {name: [x.kind for x in layers_of(m, settings, (1, 28, 28), 8)] for name, m in METHODS.items()}
    assert kinds["drsch"] == kinds["dsch"]
    assert kinds["bs-drsch"] == [*kinds["drsch"], "weights"] == kinds["nested"]
    assert kinds["drsch"] == [*kinds["euclidean"], "tanh-like"]
    assert "beside" in kinds["dsrh"]
    assert {name for name, m in METHODS.items() if m.laplacian} == {"drsch", "bs-drsch", "nested"}


def test_a_later_setting_at_its_default_leaves_fingerprints_alone():
    from bitscale.hashers import make_hasher
    from tests.hashers.clusters import features

    part = features(60, seed=1)
    quick = {"n_bits": 8, "features": "none", "iterations": 2, "classes_per_batch": 3, "images_per_class": 3}
    assert make_hasher("nested", **quick, scale_spread=2).settings.scale_spread == 2
    plain = make_hasher("nested", **quick).fit(part)
    known = [*DeepSettings.__dataclass_fields__.values()]
    later = {"scale_spread", "shift_by", "input_size", "backbone_rate", "freeze_statistics"}
    assert {field.name for field in known if field.metadata.get("later")} == later
    assert make_hasher("nested", **quick, shift_by="batch").fit(part).fingerprint == plain.fingerprint
    assert make_hasher("nested", **quick, shift_by="image").fit(part).fingerprint != plain.fingerprint
