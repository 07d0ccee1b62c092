"""Collections that outgrow the pictures their model was fitted on."""

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.default_model import default_hasher
from bitscale.collection.ingest.kept_features import left_at
from bitscale.collection.ingest.refit import note_fitted, refit, refits_by_itself
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import InputError
from bitscale.features.pixels import PixelFeatures
from tests.collection.folders import fill, model

PIXELS = "pixels@8"


@pytest.fixture
def grown(tmp_path):
    """Fitted on 4 pictures, and holding 12."""
    fill(tmp_path / "in", 4)
    hasher = default_hasher([tmp_path / "in"], n_bits=32, features=PIXELS, workers=1)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        collection.add(tmp_path / "in", workers=1)
        note_fitted(collection, 4)
        assert not refits_by_itself(collection)
        assert collection.notices() == []
        fill(tmp_path / "in", 8, first=4)
        collection.add(tmp_path / "in", workers=1)
        yield collection


@pytest.mark.slow
def test_it_says_so_and_is_fitted_anew(grown):
    before = grown.model
    assert "fitted on 4 pictures, and it holds 12" in grown.notices()[0]
    assert "reindex" in grown.notices()[0]
    assert refits_by_itself(grown)
    done = refit(grown, workers=1)
    assert (done.encoded, done.dropped) == (12, [])
    assert grown.model != before
    assert grown.notices() == []
    assert not refits_by_itself(grown)
    paths = [item.path for item in grown.items()]
    assert [row[0].distance for row in grown.search(paths, k=1)] == [0] * 12


@pytest.mark.slow
def test_a_stopped_fit_goes_on_and_compact_leaves_nothing_of_it(grown, monkeypatch):
    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(PixelFeatures, "batch_size", 2)  # four are through by then
    before = grown.model
    with pytest.raises(KeyboardInterrupt):
        refit(grown, workers=1, progress=stop)
    assert left_at(grown.path).exists()
    seen = []
    refit(grown, workers=1, progress=lambda done, total: seen.append(done))
    assert seen[0] == 5  # the first four are not read again
    assert grown.model != before
    left = left_at(grown.path)
    assert not left.exists()
    left.write_bytes(b"paths of pictures")
    grown.compact()
    assert not left.exists()


@pytest.mark.slow
def test_a_model_from_elsewhere_is_not_fitted_anew(grown):
    reindex(grown, model(n_bits=16), workers=1)
    assert grown.notices() == []
    with pytest.raises(InputError, match="was not fitted on its own pictures"):
        refit(grown)


def test_codes_made_before_the_note_was_kept_are_left_alone(tmp_path):
    fill(tmp_path / "in", 3)
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        collection.add(tmp_path / "in", workers=1)
        assert not refits_by_itself(collection)
        assert collection.notices() == []
        assert np.isfinite(collection.search(0, k=2)[0][0].distance)
