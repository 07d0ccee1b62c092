"""Collections opened where nothing may be written."""

import shutil

import pytest

from bitscale.collection import Collection
from tests.collection.made import fill, hasher
from tests.collection.unprivileged import without_privileges


@pytest.mark.slow
def test_a_log_that_cannot_be_read_where_nothing_may_be_written_is_never_passed_over(tmp_path):
    """After a crash what was acknowledged last stands in the log alone: an error, or all of it, and nothing between."""
    with Collection.create(tmp_path / "photos.bsc", hasher()) as photos:
        fill(photos, 3)
        photos._database.checkpoint()
        fill(photos, 2, seed=1)
        home = shutil.copytree(photos.path, tmp_path / "crashed.bsc")
    assert (home / "items.db-wal").stat().st_size
    (home / "items.db-shm").unlink()  # its index, which readers would have to make anew
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def look():
        with Collection.open(home, read_only=True) as reader:
            return len(list(reader.items()))

    told = without_privileges(look)
    home.chmod(0o755)
    assert "FileError" in told
    assert "cannot be opened" in told
    with Collection.open(home, read_only=True) as reader:
        assert len(list(reader.items())) == 5
