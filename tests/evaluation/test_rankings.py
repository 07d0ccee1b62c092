import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bitscale import evaluate
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.evaluation import rescore

MORE = ["map", "map@20", "map-ordered", "precision@7", "cmc@1", "ham2", "ham0-empty", "ham40"]


@pytest.fixture
def kept(fitted, small, tmp_path):
    evaluate(fitted, small, bits=[24, 8], metrics="map", keep_rankings=tmp_path / "kept")
    return tmp_path / "kept"


@pytest.mark.parametrize("ranking", ["plain", "relaxed"])
def test_new_metrics_need_no_new_run(fitted, small, tmp_path, ranking, monkeypatch):
    monkeypatch.setattr("bitscale.evaluation.rankings.QUERIES", 7)
    how = {"bits": [24, 8], "ranking": ranking, "seed": 3}
    evaluate(fitted, small, metrics="map", keep_rankings=tmp_path / "kept", **how)
    assert rescore(tmp_path / "kept", MORE).scores == evaluate(fitted, small, metrics=MORE, **how).scores


def test_kept_rankings_are_small(kept):
    arrays = load_file(kept / "24.safetensors")
    assert {array.dtype for array in arrays.values()} <= {np.dtype(np.uint8), np.dtype(np.uint16)}


def test_a_folder_in_use_is_refused(fitted, small, kept):
    with pytest.raises(InputError, match="not empty"):
        evaluate(fitted, small, keep_rankings=kept)
    with pytest.raises(FileError, match="cannot be kept"):
        evaluate(fitted, small, keep_rankings=kept / "report.json")


def test_damaged_rankings_are_refused(kept):
    path = kept / "24.safetensors"
    good = load_file(path)
    for change in (
        {"hits": good["hits"][:-1]},
        {"offsets": good["offsets"][::-1].copy()},
        {"offsets": good["offsets"][:, None]},
        {"relevant": good["relevant"] * 0},
        {"plain_items": good["plain_items"][:, :-1].copy()},
        {"extra": good["hits"]},
        {"counts": good["counts"].astype(np.int16)},
    ):
        save_file({**good, **change}, path)
        with pytest.raises(CorruptFile):
            rescore(kept, ["map"])
    path.write_bytes(b"rubbish")
    with pytest.raises(CorruptFile):
        rescore(kept, ["map"])
    path.unlink()
    with pytest.raises(FileError, match="keep_rankings"):
        rescore(kept, ["map"])
