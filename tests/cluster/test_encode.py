"""Encoding on a real Ray cluster of two nodes: the codes of plain `encode`, whatever dies on the way."""

import io
import json
import os
import select
import signal
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.cluster import work
from bitscale.cluster.blocks import cut
from bitscale.cluster.encode import encode_on_ray
from bitscale.cluster.places import Found, fetch, find
from bitscale.cluster.push import collection_of
from bitscale.cluster.shards import claim, finish, read_codes, read_shards
from bitscale.cluster.take_in import add_shards
from bitscale.cluster.work import encode_block
from bitscale.data import Labelled, as_images
from bitscale.errors import BitscaleError, ClusterError, CorruptFile, DataError, FileError, ModelMismatch
from bitscale.index.engines import connect
from bitscale.machine import CORES
from tests import servers
from tests.cli.run import inside
from tests.cluster import nodes
from tests.conftest import until

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
DRIVER = """
import sys
from bitscale.cluster.encode import encode_on_ray
encode_on_ray(sys.argv[1], sys.argv[4:], sys.argv[2], sys.argv[3])
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    bs.make_hasher("lsh", n_bits=12).fit(Labelled(as_images(PIXELS), np.arange(40) % 2, ("a", "b"))).save(path)
    return path


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def folder_of(folder, rows):
    folder.mkdir(parents=True)
    for row in rows:
        (folder / f"{row:02}.png").write_bytes(png(PIXELS[row]))
    return folder


def tar_bytes(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), 1_700_000_000
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def encoded(model, rows):
    return bs.load_hasher(model).encode(PIXELS[list(rows)])


# ---------------------------------------------------------------------- without a cluster


def test_blocks_are_named_by_what_they_are_made_of():
    found = [Found(f"/p/{i:03}.png", 10, "1") for i in range(20)]
    found.insert(5, Found("/p/a.tar", 99, "1"))
    blocks = cut(found, "model", 8)
    assert [len(block.names) for block in blocks] == [5, 1, 8, 7]
    assert [name for block in blocks for name in block.names] == [one.name for one in found]
    changed = cut([*found[:-1], found[-1]._replace(version="2")], "model", 8)
    assert [a.shard == b.shard for a, b in zip(blocks, changed, strict=True)] == [True, True, True, False]
    assert not {block.shard for block in cut(found, "other", 8)} & {block.shard for block in blocks}


def test_a_tar_is_bytes_and_nothing_it_says_is_done(tmp_path):
    """Names that climb out of a folder, links, pickles and what is no picture."""
    link = tarfile.TarInfo("link.png")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members = {"../../climbs.png": png(PIXELS[0]), "a/1.cls": b"cos\nsystem\n", "a/1.pkl": b"\x80.", "a/.x.png": b""}
    content = tar_bytes(members)
    with tarfile.open(fileobj=(file := io.BytesIO(content)), mode="a") as tar:
        tar.addfile(link)
    (tmp_path / "t.tar").write_bytes(file.getvalue())
    (tmp_path / "copies").mkdir()
    (found,) = find([str(tmp_path / "t.tar")])
    for some in fetch([found.name], tmp_path / "copies", 10):
        assert [one.name for one in some] == [f"{found.name}::../../climbs.png"]
        assert [path.name for path in (tmp_path / "copies").iterdir()] == ["00000001.png"]
        assert os.stat(some[0].path).st_mtime == 1_700_000_000
    assert not list((tmp_path / "copies").iterdir())
    (tmp_path / "t.tar").write_bytes(content[:700])
    with pytest.raises(DataError, match="cannot be read as a tar file"):
        list(fetch([found.name], tmp_path / "copies", 10))


def test_mistakes_are_told_before_any_work(model, tmp_path):
    folder = folder_of(tmp_path / "in", range(2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "empty").mkdir()
    for inputs, out, said in (
        ([tmp_path / "none"], "o", "nothing at"),
        ([tmp_path / "empty"], "o", "no picture"),
        ([folder], "mine", "no folder of codes"),
    ):
        with pytest.raises((DataError, FileError), match=said):
            encode_on_ray(model, map(str, inputs), tmp_path / out, "127.0.0.1:1")
    assert not (tmp_path / "o").exists()
    for words, said in ((("-o", "c.npy"), "is a folder of shards"), (("-o", "c", "--workers", 2), "--workers is for")):
        out = inside("encode", model, folder, "--ray", "auto", *words, cwd=tmp_path)
        assert (out.returncode, said in out.stderr) == (2, True), out.stderr


@pytest.fixture
def coded(model, tmp_path, monkeypatch):
    """A folder of pictures, one of them broken, and the folder of their codes, made as a node makes them."""
    monkeypatch.setenv(CORES, "1")
    folder = folder_of(tmp_path / "in", range(12))
    (folder / "broken.png").write_bytes(b"rubbish")
    (tmp_path / "t.tar").write_bytes(tar_bytes({f"{row}.png": png(PIXELS[row]) for row in range(12, 20)}))
    hasher = bs.load_hasher(model)
    blocks = cut(find([str(folder), str(tmp_path / "t.tar")]), hasher.fingerprint, 5)
    claim(tmp_path / "codes", hasher, model.read_bytes())
    for block in blocks:
        shard = encode_block(block.names, model.read_bytes(), hasher.fingerprint, bs.__version__)
        (tmp_path / "codes" / block.shard).write_bytes(shard)
    (tmp_path / "codes" / "000099-0123456789abcdef.parquet").write_bytes(b"of inputs that are no more")
    finish(tmp_path / "codes", hasher, blocks)
    work._loaded.pop(hasher.fingerprint)[1].close()
    assert sorted(path.name for path in (tmp_path / "codes").glob("*.parquet")) == [block.shard for block in blocks]
    return folder, tmp_path / "codes"


@pytest.mark.slow
def test_codes_are_taken_in_like_the_pictures(coded, model, tmp_path):
    """`add` of the codes is `add` of the pictures, for those that are files; a second time it changes nothing."""
    folder, codes = coded
    for home in ("one.bsc", "two.bsc", "few.bsc"):
        bs.Collection.create(tmp_path / home, bs.load_hasher(model), codes_only=home == "few.bsc").close()
    out = inside("add", "one.bsc", codes, "--label", "x", "--json", cwd=tmp_path)
    assert (json.loads(out.stdout)["added"], len(json.loads(out.stdout)["skipped"])) == (20, 1), out.stderr
    assert json.loads(inside("add", "one.bsc", codes, "--json", cwd=tmp_path).stdout)["unchanged"] == 20
    with bs.Collection.open(tmp_path / "one.bsc") as one, bs.Collection.open(tmp_path / "two.bsc") as two:
        two.add(folder, labels=["x"])
        assert len(two) == 12
        for item in two.items():
            known = one.item(one.find(item.path))
            assert replace(known, id=item.id) == item
            assert one.index.get([known.id]) == two.index.get([item.id])
        assert one.add(folder).unchanged == 12
        assert one.verify().ok
    with bs.Collection.open(tmp_path / "few.bsc") as few:
        assert add_shards(few, codes).added == 20
        assert all(item.path == "" for item in few.items())


@pytest.mark.slow
def test_codes_of_another_model_and_damaged_ones_are_refused(coded, tmp_path):
    _, codes = coded
    other = bs.make_hasher("lsh", n_bits=12, seed=5).fit(Labelled(as_images(PIXELS), np.arange(40) % 2, ("a", "b")))
    with bs.Collection.create(tmp_path / "other.bsc", other) as wrong, pytest.raises(ModelMismatch, match="of model"):
        add_shards(wrong, codes)
    out = inside("add", "other.bsc", codes, tmp_path / "in", cwd=tmp_path)
    assert (out.returncode, "two calls" in out.stderr) == (2, True)
    (tmp_path / "other.bsc").rename(codes / "pushed.bsc")  # as if they had been of another model when last pushed
    with pytest.raises(ModelMismatch, match=r"Remove pushed.bsc there"):
        collection_of(codes)
    shard = next(codes.glob("*.parquet"))
    content = shard.read_bytes()
    for damaged in (content[:-9], b"rubbish", b""):
        shard.write_bytes(damaged)
        with pytest.raises(CorruptFile, match="damaged"):
            read_codes(codes)
    shard.unlink()
    with pytest.raises(FileError, match="is missing"):
        read_codes(codes)
    with pytest.raises(ClusterError, match="Install the same"):
        encode_block([], b"", "", "0.0.0")


@pytest.mark.slow
def test_codes_are_pushed_to_an_engine_once(coded, tmp_path):
    codes, names = read_codes(coded[1])
    address = servers.address("postgres", "shards")
    for left in connect.existing(address):
        left.drop()
    for added in (20, 0):
        out = inside("push", coded[1], address, "--verify", 5, "--json", cwd=tmp_path)
        done = json.loads(out.stdout)
        assert (done["added"], done["removed"], done["items"], done["differences"]) == (added, 0, 20, [])
    with connect.open_index(address) as index:
        assert index.get(np.arange(20)) == codes
        index.drop()
    with bs.Collection.open(coded[1] / "pushed.bsc", read_only=True) as kept:
        assert [item.path for item in kept.items()] == names


# ---------------------------------------------------------------------- with one


@pytest.mark.slow
def test_folders_tars_and_object_stores_give_the_codes_of_plain_encode(model, tmp_path):
    from pyarrow.fs import S3FileSystem

    ray = nodes.connect()
    folder = folder_of(tmp_path / "in" / "sub", range(12)).parent
    (folder / "broken.png").write_bytes(b"rubbish")
    (tmp_path / "t.tar").write_bytes(tar_bytes({f"{row}.png": png(PIXELS[row]) for row in range(12, 20)}))
    store = S3FileSystem(endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=True)
    store.create_dir("pictures")
    for row in range(20, 30):
        with store.open_output_stream(f"pictures/in/{row}.png") as file:
            file.write(png(PIXELS[row]))
    with store.open_output_stream("pictures/in/z.tar") as file:
        file.write(tar_bytes({f"{row}.png": png(PIXELS[row]) for row in range(30, 40)}))
    inputs = folder, tmp_path / "t.tar", "s3://pictures/in"
    out = inside("encode", model, *inputs, "--ray", nodes.shared().address, "--out", "codes", "--json", cwd=tmp_path)
    about = json.loads(out.stdout)
    assert (about["items"], about["skipped"], about["complete"]) == (40, 1, True), out.stderr
    codes, names = read_codes(tmp_path / "codes")
    assert codes == encoded(model, range(40))
    assert names[0] == str(folder / "sub" / "00.png")
    assert names[12] == f"{tmp_path / 't.tar'}::12.png"
    assert names[20] == "s3://pictures/in/20.png"
    assert names[-1] == "s3://pictures/in/z.tar::39.png"
    broken = [row for shard in read_shards(tmp_path / "codes") for row in shard.rows if row.picture is None]
    assert [row.name for row in broken] == [str(folder / "broken.png")]
    assert "cannot be read as an image" in broken[0].reason
    assert ray.is_initialized()


class Gate:
    """A tar file that is a pipe: a node that reads it stands still until its content is let through."""

    def __init__(self, path, content):
        self.path, self.content, self.handle = path, content, None
        os.mkfifo(path)

    def reached(self):
        """Whether a node stands before it; it then stays open, so that the node waits for content."""
        if self.handle is None:
            try:
                self.handle = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
        return True

    def left(self):
        """Whether the node that stood before it is gone."""
        poll = select.poll()
        poll.register(self.handle, select.POLLERR)
        return bool(poll.poll(0))

    def open(self):
        """Let the content through to whoever stands there, or comes."""
        if self.handle is not None and not self.left():
            os.set_blocking(self.handle, True)
            with os.fdopen(self.handle, "wb") as file:
                file.write(self.content)
            return
        if self.handle is not None:
            os.close(self.handle)
        threading.Thread(target=lambda: self.path.write_bytes(self.content), daemon=True).start()


@pytest.mark.slow
def test_a_killed_driver_and_a_killed_node_cost_only_unfinished_blocks(model, tmp_path):
    cluster = nodes.shared()
    folder = folder_of(tmp_path / "in", range(24))
    held = [{f"{row}.png": png(PIXELS[row]) for row in rows} for rows in (range(24, 32), range(32, 40))]
    gates = [Gate(tmp_path / f"gate-{number}.tar", tar_bytes(members)) for number, members in enumerate(held)]
    words = [model, tmp_path / "codes", cluster.address, folder, *(gate.path for gate in gates)]
    command = [sys.executable, "-c", DRIVER, *map(str, words)]

    def shards():
        return {path.name: path.stat().st_ino for path in (tmp_path / "codes").glob("*.parquet")}

    first = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    until(lambda: sum(gate.reached() for gate in gates) == 2 and len(shards()) == 3)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = shards()
    until(lambda: all(gate.left() for gate in gates))
    for gate in gates:
        os.close(gate.handle)
        gate.handle = None
    second = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    until(lambda: sum(gate.reached() for gate in gates) == 2)
    cluster.kill(cluster.nodes[-1])
    until(lambda: any(gate.left() for gate in gates))
    for gate in gates:
        gate.open()
    assert second.wait() == 0
    codes, _ = read_codes(tmp_path / "codes")
    assert codes == encoded(model, range(40))
    assert done.items() <= shards().items()
    assert len(shards()) == 5
    cluster.add()


@pytest.mark.slow
def test_local_is_a_ray_of_the_command_s_own(model, tmp_path):
    """Wherever temporary files go, however long that name is; nothing of it is left there."""
    folder = folder_of(tmp_path / "in", range(12))
    words = ["-m", "bitscale", "encode", model, folder, "--ray", "local", "--out", tmp_path / "codes"]
    (long := tmp_path / ("long" * 20)).mkdir()
    env = {**os.environ, "TMPDIR": str(long), "RAY_TMPDIR": ""}  # sockets want a short path
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert "12 codes of 12 bits" in done.stdout
    assert not list(long.glob("ray*"))
    codes, _ = read_codes(tmp_path / "codes")
    assert codes == encoded(model, range(12))


@pytest.mark.slow
def test_no_cluster_there_is_one_line(model, tmp_path):
    folder = folder_of(tmp_path / "in", range(2))
    script = "from bitscale.cli import main; main()"
    words = ["encode", model, folder, "--ray", "nowhere:1:2", "--out", tmp_path / "codes"]
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "no Ray cluster at nowhere:1:2" in done.stderr
    with pytest.raises(DataError, match="not complete"):
        list(read_shards(tmp_path / "codes"))
    assert issubclass(ClusterError, BitscaleError)
