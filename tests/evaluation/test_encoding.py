import numpy as np
import pytest

from bitscale import evaluate, make_hasher
from bitscale.evaluation.encoding import encode_split
from bitscale.features.gist import GistFeatures


def test_times_are_split_and_per_query(fitted, sample):
    seconds = evaluate(fitted, sample, metrics="map").lengths[0].seconds
    assert min(seconds.feature, seconds.hash, seconds.search) > 0
    assert seconds.total == seconds.feature + seconds.hash + seconds.search


def test_the_hasher_is_not_changed(fitted, small):
    before = fitted.extractor
    encode_split(fitted, small, relaxed=False)
    assert fitted.extractor is before


@pytest.mark.slow
def test_cached_features_are_timed_without_the_cache(sample, tmp_path, monkeypatch):
    part = sample.train.take(np.arange(100))
    hasher = make_hasher("lsh", n_bits=8, features="gist")
    hasher.extractor.cache = tmp_path
    hasher.fit(part)
    one = encode_split(hasher, sample_of(sample), relaxed=False)
    computed, compute = [], GistFeatures.compute

    def counted(self, prepared):
        computed.append(len(prepared))
        return compute(self, prepared)

    monkeypatch.setattr(GistFeatures, "compute", counted)
    two = encode_split(hasher, sample_of(sample), relaxed=False)
    assert one.queries == two.queries
    assert sum(computed) > 0  # all is in the cache, and some of it is computed anew to be timed
    assert two.feature_seconds > 0
    assert hasher.extractor.cache == tmp_path


@pytest.mark.slow
def test_cached_features_of_a_plain_array(sample, tmp_path):
    from bitscale.data import Labelled, LeftOut, Split

    pixels = np.stack([sample.query.images[i] for i in range(70)])
    part = Labelled(pixels, sample.query.labels[:70], sample.query.label_names)
    hasher = make_hasher("lsh", n_bits=8, features="gist")
    hasher.extractor.cache = tmp_path
    split = Split("array", "P0", part, part, part, LeftOut.itself(70))
    assert 0 < evaluate(hasher.fit(part), split, metrics="map")["map", 8] < 1


def sample_of(sample):
    from bitscale.data import LeftOut, Split

    query = sample.query.take(np.arange(50))
    return Split("few", "P0", sample.train, query, query, LeftOut.itself(50))


def test_relaxed_queries_search_binary_items(fitted, sample):
    encoded = encode_split(fitted, sample, relaxed=True)
    assert encoded.queries.codes() == encoded.database == fitted.encode(sample.query.images)
