from pathlib import Path

import numpy as np

from bitscale.data import load_dataset
from bitscale.data.sets import sample


def test_the_sample_needs_nothing(tmp_path: Path) -> None:
    split = load_dataset("sample", tmp_path / "nowhere")
    assert np.bincount(split.train.labels).tolist() == [400] * 10
    assert np.bincount(split.query.labels).tolist() == [100] * 10
    assert split.query.images[0].shape == (28, 28, 1)
    assert split.query.images.fingerprint[:16] == "528b3d6dc1e05a97"


def test_it_is_small_and_carries_its_licence() -> None:
    folder = Path(sample.__file__).parent / "sample_data"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    assert "MIT License" in (folder / "LICENSE").read_text()
