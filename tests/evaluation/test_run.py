import numpy as np
import pytest

from bitscale import evaluate, make_hasher
from bitscale.codes import Relaxed
from bitscale.data import LeftOut, Split, load_dataset
from bitscale.errors import InputError, NotFitted
from bitscale.evaluation import default_metrics
from tests.evaluation.naive import naive, weighted_like

NAMES = ["map", "precision@10", "ham2", "ham2-empty"]


class Weighted:
    """The fitted hasher, its bits given weights: what a learned method will be."""

    def __init__(self, hasher):
        self.hasher = hasher

    def __getattr__(self, name):
        return getattr(self.hasher, name)

    @property
    def extractor(self):
        return None

    def encode(self, images):
        return weighted_like(self.hasher.encode(images))

    def relax(self, images):
        relaxed = self.hasher.relax(images)
        return Relaxed(relaxed.values, weighted_like(self.encode(images)).bit_weights, model="weighted")


@pytest.mark.slow
@pytest.mark.parametrize("ranking", ["weighted", "plain", "relaxed"])
@pytest.mark.parametrize("bits", [24, 7])
def test_numbers_equal_naive_ones(fitted, small, ranking, bits):
    hasher = Weighted(fitted)
    report = evaluate(hasher, small, bits=bits, metrics=NAMES, ranking=ranking)
    queries = (hasher.relax if ranking == "relaxed" else hasher.encode)(small.query.images)
    expected = naive(queries, hasher.encode(small.database.images), small, bits, plain=ranking == "plain")
    for name in ("ham2", "ham2-empty"):
        assert report[name, bits] == pytest.approx(expected[name], abs=1e-12)
    for name in ("map", "precision@10"):
        assert report[name, bits] == pytest.approx(expected[name], abs=2e-3)  # orders of ties are sampled there


def test_a_search_leaves_out_the_query_itself(fitted, sample):
    alone = Split("twins", "P0", sample.train, sample.query, sample.query, LeftOut.none(len(sample.query)))
    p0 = evaluate(fitted, sample, metrics="cmc@1", bits=24)["cmc@1", 24]
    assert p0 < evaluate(fitted, alone, metrics="cmc@1", bits=24)["cmc@1", 24]


def test_lengths_come_from_one_encoding(fitted, sample, monkeypatch):
    encoded = []
    real = type(fitted).encode
    monkeypatch.setattr(type(fitted), "encode", lambda self, images: encoded.append(1) or real(self, images))
    report = evaluate(fitted, sample, bits=[24, 16, 8], metrics=["map"])
    assert len(encoded) == 1
    assert [score.code for score in report.scores] == ["trained at 24", "truncated from 24", "truncated from 24"]
    truncated = evaluate(fitted, sample, bits=[8], metrics=["map"])
    assert truncated["map", 8] == report["map", 8]


def test_every_number_says_what_it_is(fitted, small):
    (score,) = evaluate(fitted, small, metrics="map-ordered", seed=7).scores
    assert (score.dataset, score.protocol, score.method, score.features) == ("small", "cameras", "itq", "pixels")
    assert (score.bits, score.ranking, score.hasher_seed, score.tie_seed) == (24, "plain", 0, 7)
    assert score.ties == "one order, by (distance, id after a shuffle with seed 7)"
    assert (score.n_queries, score.n_excluded) == (60, 0)


def test_equal_weights_are_called_plain_and_rank_the_same(fitted, small):
    weighted, plain = (evaluate(fitted, small, metrics=NAMES, ranking=how) for how in ("weighted", "plain"))
    assert weighted.scores == plain.scores
    assert evaluate(Weighted(fitted), small, metrics=NAMES).scores[0].ranking == "weighted"


def test_threads_and_blocks_change_nothing(fitted, sample, monkeypatch):
    whole = evaluate(fitted, sample, threads=1, ranking="relaxed")
    monkeypatch.setattr("bitscale.evaluation.search.BLOCK_CELLS", 17_000)
    assert evaluate(fitted, sample, threads=3, ranking="relaxed").scores == whole.scores


def test_progress_counts_features_and_queries(fitted, sample):
    seen = []
    evaluate(fitted, sample, bits=[24, 8], metrics="map", progress=lambda *what: seen.append(what))
    assert ("features of queries", 1000, 1000) in seen
    assert [what for what in seen if what[1] == what[2] and "search" in what[0]] == [
        ("search with 24 bits", 1000, 1000),
        ("search with 8 bits", 1000, 1000),
    ]


def test_queries_without_a_relevant_item_are_excluded_and_counted(fitted, sample):
    labels = sample.database.labels
    lonely = np.flatnonzero(labels == 3)
    database = sample.database.take(np.setdiff1d(np.arange(len(labels)), lonely))
    split = Split("lonely", "P0-db", sample.train, sample.query, database, LeftOut.none(len(sample.query)))
    report = evaluate(fitted, split)
    assert {(score.n_queries, score.n_excluded) for score in report.scores} == {(900, 100)}
    assert "100 queries have no relevant item" in str(report)
    nothing = Split("none", "x", sample.train, sample.query.take(lonely), database, LeftOut.none(len(lonely)))
    with pytest.raises(InputError, match="none of the 100 queries has a relevant item"):
        evaluate(fitted, nothing)


def test_a_k_past_the_database_takes_all_of_it(fitted, small):
    assert evaluate(fitted, small, metrics="recall@100000")["recall@100000", 24] == 1


def test_bad_arguments_are_refused_before_any_work(fitted, small):
    for wrong, said in (
        ({"bits": 25}, "between 1 and 24"),
        ({"bits": []}, "at least one code length"),
        ({"bits": [8, 8]}, "each once"),
        ({"metrics": ["mop"]}, "no metric 'mop'"),
        ({"metrics": []}, "at least one metric"),
        ({"ranking": "best"}, "weighted, plain, relaxed"),
    ):
        with pytest.raises(InputError, match=said):
            evaluate(fitted, small, **wrong)
    with pytest.raises(NotFitted):
        evaluate(make_hasher("itq", n_bits=8), small)


def test_a_protocol_with_a_cut_takes_map_within_it(sample):
    db = load_dataset("sample", protocol="P0-db")
    cut = Split(db.name, db.protocol, db.train, db.query, db.database, db.left_out, top=50)
    assert default_metrics(cut)[:2] == ("map@50", "map-ordered@50")
    assert default_metrics(sample)[0] == "map"
