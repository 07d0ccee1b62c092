"""The thread that seals: what went wrong in it is kept until a run goes well."""

import pytest

from bitscale.collection import Collection
from bitscale.collection.segments import seal
from bitscale.collection.segments.sealer import Sealer
from bitscale.errors import FileError
from tests.collection.made import fill, hasher


@pytest.mark.parametrize("error", [FileError("the disk is full."), ValueError("a mistake of ours")])
def test_the_last_problem_is_kept_until_a_run_goes_well(error):
    errors = [error, None]

    def work():
        if (problem := errors.pop(0)) is not None:
            raise problem

    sealer = Sealer(work)
    for said in (str(error), None):
        sealer.ask()
        sealer.wait()
        assert (said is None) == (sealer.problem is None)
        assert said is None or said in str(sealer.problem)
    sealer.close()


def test_a_failed_seal_is_told_though_no_note_of_it_can_be_written(tmp_path, monkeypatch):
    """A full disk takes no note either: then the writer itself tells."""

    def full(*_):
        raise FileError("the disk is full.")

    with Collection.create(tmp_path / "photos.bsc", hasher()) as photos:
        fill(photos, 5)
        with monkeypatch.context() as patch:
            patch.setattr(seal, "write_segment", full)
            patch.setattr(seal, "_note_problem", full)
            photos._sealer.ask()
            photos._sealer.wait()
        [notice] = photos.notices()
        assert "could not be moved" in notice
        assert "the disk is full" in notice
        photos._sealer.ask()
        photos._sealer.wait()
        assert photos.notices() == []
