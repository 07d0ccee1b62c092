import hashlib
import io
import stat
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bitscale.data import fetch as fetch_module
from bitscale.data.fetch import Source, unpack
from bitscale.data.fetch import fetch_source as fetch
from bitscale.errors import DataError

BODY = np.random.default_rng(0).bytes(1_000_000)
MD5 = hashlib.md5(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    ranges = True  # whether it can resume
    cut: int | None = None  # bytes after which it closes the connection
    body = BODY

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        self.send_response(206 if start else 200)
        body = self.server.body[start:]
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.server.body) - 1}/{len(self.server.body)}")
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def source(server: Server, **changes: object) -> Source:
    facts: dict = {"urls": (server.url,), "md5": MD5, "size": len(BODY), "folder": "set", **changes}
    return Source(**facts)


def test_download(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    done = fetch(source(server), tmp_path, lambda *facts: seen.append(facts))
    assert done.path.read_bytes() == BODY
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))
    assert fetch(source(server), tmp_path).downloaded == 0
    assert len(server.asked) == 1


def test_a_file_of_somebody_else_is_not_written_over(server: Server, tmp_path: Path) -> None:
    mine = tmp_path / "set" / "file.bin"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    with pytest.raises(DataError, match=r"is there already.*Move it away"):
        fetch(source(server), tmp_path)
    assert mine.read_bytes() == b"mine"
    assert server.asked == []


def test_nothing_is_unpacked_over_a_file_of_somebody_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        for name in ("one", "two", "three"):
            zipped.writestr(name, name)
    target = tmp_path / "set"
    target.mkdir()
    (target / "one").write_text("one")  # as an unpacking that broke off leaves it
    (target / "two").write_text("mine")
    with pytest.raises(DataError, match=r"two is there already.*Move it away"):
        unpack(tmp_path / "a.zip", target, 1000)
    assert {path.name: path.read_text() for path in target.iterdir()} == {"one": "one", "two": "mine"}
    (target / "two").unlink()
    assert [path.read_text() for path in unpack(tmp_path / "a.zip", target, 1000)] == ["one", "two", "three"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_is_gone_on_with(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.cut = 400_000
    with pytest.raises(DataError, match=r"400,000 of 1,000,000 bytes.*run the same command again"):
        fetch(source(server), tmp_path)
    assert not (tmp_path / "set" / "file.bin").exists()
    server.cut, server.ranges = None, ranges
    done = fetch(source(server), tmp_path)
    assert server.asked[-1] == "bytes=400000-"
    assert done.path.read_bytes() == BODY
    assert done.resumed_at == 400_000
    assert done.downloaded == (600_000 if ranges else 1_000_000)


def test_a_wrong_checksum(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"md5 {MD5}, expected .* with {'0' * 32}"):
        fetch(source(server, md5="0" * 32), tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_more_than_was_published(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="offers 1,000,000 bytes where 10 are expected"):
        fetch(source(server, size=10), tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_no_server_and_the_next_address(server: Server, tmp_path: Path) -> None:
    dead = "http://127.0.0.1:9/file.bin"
    with pytest.raises(DataError, match="0 of 1,000,000 bytes"):
        fetch(source(server, urls=(dead,)), tmp_path)
    assert fetch(source(server, urls=(dead, server.url)), tmp_path).path.read_bytes() == BODY
    with pytest.raises(DataError, match="only http"):
        fetch(source(server, urls=("file:///etc/hosts",)), tmp_path / "other")


@pytest.mark.parametrize("begun", [0, 400_000])
def test_a_page_in_the_place_of_the_file_spoils_nothing(server: Server, tmp_path: Path, begun: int) -> None:
    if begun:
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "file.bin.part").write_bytes(BODY[:begun])
    with Server() as portal:
        portal.body, portal.ranges = b"<html>log in</html>", False
        threading.Thread(target=portal.serve_forever).start()
        done = fetch(source(server, urls=(portal.url, server.url)), tmp_path)
        portal.shutdown()
    assert done.path.read_bytes() == BODY
    assert done.downloaded == len(BODY) - begun


def test_a_root_that_is_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    with pytest.raises(DataError, match="cannot be made"):
        fetch(source(server), tmp_path / "root")


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of(("name", b"1")))
    (tmp_path / "name").mkdir()
    with pytest.raises(DataError, match=r"name is there already.*Move it away"):
        unpack(tmp_path / "a.tar", tmp_path, 100)


def tar_of(*members: tuple[str, bytes | tarfile.TarInfo]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                tar.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members:
            zipped.writestr(name, content)
    return out.getvalue()


def special(kind: bytes, leads_to: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, leads_to
    return info


def zip_link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


HOSTILE = {
    "tar parent": tar_of(("ok", b"1"), ("../evil", b"x")),
    "tar deep parent": tar_of(("a/../../evil", b"x")),
    "tar absolute": tar_of(("/tmp/evil", b"x")),
    "tar link within": tar_of(("ok", b"1"), ("link", special(tarfile.SYMTYPE, "ok"))),
    "tar symlink": tar_of(("ok", b"1"), ("link", special(tarfile.SYMTYPE))),
    "tar hard link": tar_of(("link", special(tarfile.LNKTYPE))),
    "tar device": tar_of(("device", special(tarfile.CHRTYPE))),
    "tar pipe": tar_of(("pipe", special(tarfile.FIFOTYPE))),
    "zip parent": zip_of(("ok", b"1"), ("../evil", b"x")),
    "zip backslash": zip_of(("..\\evil", b"x")),
    "zip drive": zip_of(("C:/evil", b"x")),
    "zip link": zip_of((zip_link(), b"/etc/passwd")),
    "zip bomb": zip_of(("zeros", bytes(5_000_000))),
    "tar too large": tar_of(("zeros", bytes(5_000_000))),
    "twice": tar_of(("same", b"1"), ("same", b"2")),
    "file as folder": tar_of(("same", b"1"), ("same/deeper", b"2")),
    "cut tar": tar_of(("data", BODY))[:-50_000],
    "cut zip": zip_of(("data", BODY))[:-50_000],
    "no archive": b"<html></html>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_leave_nothing(tmp_path: Path, name: str) -> None:
    target = tmp_path / "in" / "target"
    target.mkdir(parents=True)
    archive = tmp_path / "archive"
    archive.write_bytes(HOSTILE[name])
    with pytest.raises(DataError, match="archive"):
        unpack(archive, target, 2_000_000)
    assert list(target.iterdir()) == []
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["target"]


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "MAX_FILES", 3)
    (tmp_path / "a.tar").write_bytes(tar_of(*((f"{i}", b"") for i in range(4))))
    with pytest.raises(DataError, match="more than 3 files"):
        unpack(tmp_path / "a.tar", tmp_path, 100)


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_an_archive_is_fetched_and_unpacked(server: Server, tmp_path: Path, pack) -> None:
    server.body = pack(("set/a.bin", b"a" * 10), ("set/sub/b.bin", b"b"))
    what = source(server, md5=hashlib.md5(server.body).hexdigest(), size=len(server.body), folder="", unpack=True)
    done = fetch(what, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in done.unpacked] == ["set/a.bin", "set/sub/b.bin"]
    assert (tmp_path / "set" / "sub" / "b.bin").read_bytes() == b"b"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]  # neither archive nor leftovers
