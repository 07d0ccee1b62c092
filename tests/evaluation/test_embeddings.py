"""Methods that give real values are ranked by squared distance, exactly; what needs bits is refused."""

import json

import numpy as np
import pytest

import bitscale as bs
from bitscale.data import LeftOut, Split
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError, ModelMismatch
from bitscale.evaluation.scan import squared_blocks
from bitscale.metrics import code_health, expected_ap, mean, rank
from tests.cli.run import bitscale, inside
from tests.hashers.clusters import features

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
TRAIN, QUERY = features(300, seed=1), features(90, seed=2)
SPLIT = Split("clusters", "P0", TRAIN, QUERY, QUERY, LeftOut.itself(len(QUERY)))


@pytest.fixture(scope="module")
def euclidean():
    return bs.make_hasher("euclidean", n_bits=12, features="none", iterations=20, images_per_class=5).fit(TRAIN)


def test_map_is_that_of_the_naive_squared_distances(euclidean):
    report = bs.evaluate(euclidean, SPLIT, metrics=["map", "precision@20"])
    values = euclidean.encode(QUERY.images).values.astype(np.float64)
    naive = ((values[:, None] - values) ** 2).sum(2)
    relevant = QUERY.labels[:, None] == QUERY.labels
    expected = mean(expected_ap(rank(naive, relevant, left_out=[np.array([i]) for i in range(len(QUERY))])))
    assert report["map", 12] == pytest.approx(expected.value, abs=1e-9)
    score = report.scores[0]
    assert (score.ranking, score.protocol, score.code) == ("squared distance", "P0", "trained at 12")
    assert "12 values" in str(report)
    assert bs.Report.from_json(report.to_json()) == report


def test_a_database_of_its_own(euclidean):
    split = Split("clusters", "P0-db", TRAIN, QUERY, TRAIN, LeftOut.none(len(QUERY)))
    report = bs.evaluate(euclidean, split)
    assert report["map", 12] > 0.5
    assert not [name for name in report.metrics if name.startswith("ham")]
    assert report.lengths[0].distinct_codes == len(TRAIN)
    assert report.lengths[0].seconds.search > 0


def test_equal_vectors_are_exactly_tied():
    rows = RNG.normal(size=(40, 37)).astype(np.float32)
    items = Embeddings(rows[RNG.integers(0, 40, 3001)])
    for _, block in squared_blocks(Embeddings(rows * np.float32(1.7)), items, cells=9000):
        for column in np.unique(items.values, axis=0)[:5]:
            same = np.flatnonzero((items.values == column).all(axis=1))
            assert (block[:, same] == block[:, same[:1]]).all()


@pytest.mark.parametrize("d", [1, 2, 3, 64, 65, 1024])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 3e9])
def test_distances_are_exact_on_the_grid_and_close_off_it(d, scale):
    a, b = (Embeddings((RNG.uniform(-1, 1, (7, d)) * scale).astype(np.float32)) for _ in range(2))
    b = Embeddings(np.concatenate([b.values, np.sign(a.values) * np.float32(scale), -a.values, a.values]))
    from bitscale.embeddings import grid_unit

    unit = grid_unit(a, b)
    whole_a, whole_b = ([[int(x) for x in row] for row in lot.on_grid(unit)] for lot in (a, b))
    exact = [[sum((x - y) ** 2 for x, y in zip(r, s, strict=True)) for s in whole_b] for r in whole_a]
    found = np.concatenate([block for _, block in squared_blocks(a, b, cells=30)])
    assert found.tolist() == exact
    naive = ((a.values.astype(np.float64)[:, None] - b.values.astype(np.float64)) ** 2).sum(2)
    np.testing.assert_allclose(a.distances(b), naive, rtol=1e-4, atol=1e-5 * scale**2)
    assert not a.distances(a).diagonal().any()


def test_bad_embeddings():
    assert Embeddings(np.zeros((3, 2))).distances(Embeddings(np.zeros((1, 2)))).tolist() == [[0.0]] * 3
    with pytest.raises(ModelMismatch, match="different length"):
        Embeddings(np.zeros((3, 2))).distances(Embeddings(np.zeros((3, 4))))


def test_health_of_values():
    values = RNG.normal(size=(500, 3))
    values = np.concatenate([values, values[:, :1] * -2, np.ones((500, 1))], axis=1)
    health = code_health(Embeddings(np.concatenate([values, values[:5]])))
    assert health.constant_bits == 1
    assert health.max_correlation == pytest.approx(1, abs=1e-6)
    assert (health.n_items, health.distinct_codes, health.largest_collision) == (505, 500, 2)


def test_what_needs_bits_is_refused(euclidean, tmp_path):
    for wrong, said in (
        ({"metrics": ["map", "ham2"]}, "ham2 counts differing bits"),
        ({"bits": [12, 8]}, "--each"),
        ({"bits": 8}, "no order"),
        ({"ranking": "plain"}, "squared distance"),
        ({"ranking": "relaxed"}, "squared distance"),
        ({"keep_rankings": tmp_path / "kept"}, "counts of bits"),
    ):
        with pytest.raises(InputError, match=said):
            bs.evaluate(euclidean, SPLIT, **wrong)


def test_from_the_command_line(tmp_path):
    model = tmp_path / "e.safetensors"
    quick = ("--set", "iterations=20", "--set", "images_per_class=5")
    done = bitscale("train", "sample", "euclidean", "--bits", 8, *quick, "--out", model)
    assert done.returncode == 0, done.stderr
    done = inside("evaluate", "sample", "--model", model, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {score["ranking"] for score in found["scores"]} == {"squared distance"}
    each = inside("evaluate", "sample", "euclidean", "--bits", "6,4", "--each", *quick, "--metrics", "map", "--json")
    assert [score["bits"] for score in json.loads(each.stdout)["scores"]] == [6, 4], each.stderr
    for words, said in ((("--metrics", "ham2"), "counts differing bits"), (("--bits", "4"), "--each")):
        refused = inside("evaluate", "sample", "--model", model, *words)
        assert refused.returncode == 1
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1
