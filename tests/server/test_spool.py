"""Pictures on their way in: the folder that they are kept in may go, and a disk may be full."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.server.serving import error_of

AT = "/v1/collections/photos/search/picture"


@pytest.fixture
def picture(photos):
    return (photos.parent / "holiday" / "03.png").read_bytes()


def ask(client, picture):
    return client.post(AT, content=picture, headers={"content-type": "image/png"})


def test_a_folder_that_the_system_tidied_away_is_made_anew(serve, photos, picture):
    client = serve(photos)
    before = Path(client.service.spool._folder.name)
    shutil.rmtree(before)
    assert ask(client, picture).status_code == 200
    now = Path(client.service.spool._folder.name)
    assert now != before
    assert stat.S_IMODE(now.stat().st_mode) == 0o700
    os.symlink(now, before)  # somebody else's, in its place: never looked at again
    assert ask(client, picture).status_code == 200
    before.unlink()


def test_a_picture_that_cannot_be_kept_is_told_with_when_to_try_again(serve, photos, picture):
    client = serve(photos)
    for number, kind in enumerate(("image/png", "multipart/form-data")):
        Path(client.service.spool._folder.name, str(2 * number)).mkdir()  # stands for whatever the disk refuses
        how = {"content": picture, "headers": {"content-type": kind}}
        how = how if number == 0 else {"files": {"picture": picture}}
        refused = client.post(AT, **how)
        assert error_of(refused)["status"] == 503
        assert refused.headers["retry-after"]
        assert client.post(AT, **how).status_code == 200
