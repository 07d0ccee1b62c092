"""Folders that appear whole or not at all, while other processes make the same one."""

import shutil

from bitscale.collection.upkeep import partial


def test_a_folder_taken_for_a_leftover_before_it_was_held_is_made_again(tmp_path, monkeypatch):
    """Between its making and its lock another process may have removed it, lock and all."""
    real, taken = partial._held, []

    def held(folder):
        handle = real(folder)
        if not taken:
            taken.append(folder)
            shutil.rmtree(folder)
        return handle

    monkeypatch.setattr(partial, "_held", held)
    with partial.partial_folder(tmp_path / "photos.bsc") as folder:
        assert folder.is_dir()
        assert folder != taken[0]
        partial.rename_new(folder, tmp_path / "photos.bsc")
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bsc"]


def test_a_folder_that_somebody_holds_is_left_alone(tmp_path):
    with (
        partial.partial_folder(tmp_path / "photos.bsc") as first,
        partial.partial_folder(tmp_path / "photos.bsc") as other,
    ):
        assert first.is_dir()
        assert other.is_dir()
    assert not list(tmp_path.iterdir())
