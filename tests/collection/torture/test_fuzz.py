"""Inputs of any kind, a million each under `make torture`: an answer, or an error of ours."""

import json
import random
import zlib

import numpy as np
import pytest

import bitscale as bs
from bitscale.cli.batch import read_batch
from bitscale.collection import Collection, NewItem
from bitscale.collection.segments.manifest import Manifest, checksum, parsed
from bitscale.collection.store.database import Database
from bitscale.errors import BitscaleError, CorruptFile
from tests.collection.made import codes_for, hasher
from tests.conftest import TORTURE

TIMES = 1_000_000 if TORTURE else 3_000
PARTS = 10 if TORTURE else 1  # for several processes to share

MANIFEST = json.dumps(
    {
        "model": "abc",
        "bit_weights": [1.0, 0.5, 0.25],
        "sealed": 7,
        "segments": [{"name": "000001-ab.bsi", "items": 3, "size": 100, "checksum": 5}],
    },
    separators=(",", ":"),
)
CONDITIONS = ["camera=2", "label=cat", "path~holiday", "year>=2020", "metadata.id!=null", "size<1e3", 'who="x"']
LINES = ['{"path": "/a/b.png"}', '{"id": 17}', '"/c.png"', "17", "path,id\n/a.png,\n,3\n", "id\n12\n", "path\nx\n"]
WORDS = [
    "null", "true", "NaN", "1e999", "-1", "9" * 30, "9" * 5000, '"', "\\", "[" * 50, "{" * 50, "\0", "\ud800", "\udcff",
    "'; DROP TABLE items; --", "$", "%s", "\x1b", "é", "\U0001f4f7", "=", "~", "!=", ">=", "path", "label", "id", ",",
    "\n", "\r", "\u2028", " ", "", "0x10", "1_000", "\u0663", "--", "/*", "?", "[1]",
]  # fmt: skip


HUGE = ["[" * 200_000, '{"a":' * 2000, "x" * 300_000, "9" * 200_000]


def odd_word(rng: random.Random) -> str:
    return rng.choice(HUGE if rng.random() < 0.003 else WORDS)


def mutated(text: str, rng: random.Random) -> str:
    """A text with a few things changed: characters, pieces doubled, cut or swapped, odd words put in."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        how = rng.randrange(6)
        if how == 0:
            text = text[:at] + odd_word(rng) + text[at:]
        elif how == 1:
            text = text[:at] + odd_word(rng) + text[to:]
        elif how == 2:
            text = text[:at] + text[to:]
        elif how == 3:
            text = text[:to] + text[at:to] + text[to:]
        elif how == 4:
            text = text[:at] + chr(rng.choice([rng.randrange(128), rng.randrange(0x10FFFF)])) + text[at + 1 :]
        else:
            text = text[to:] + text[at:to] + text[:at]
        text = text[:300_000]
    return text


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    with Collection.create(tmp_path_factory.mktemp("fuzz") / "photos.bsc", hasher()) as made:
        items = [
            NewItem("/a/b.png", labels=("cat", "é"), metadata={"camera": 2, "who": "x", "deep": {"a": [1, None]}}),
            NewItem("/\udcff.png", metadata={"camera": "2", "year": 2021.5, "yes": True, "no": None}),
            NewItem(),
        ]
        made.apply(codes=codes_for(made, 3), items=items)
        yield made


def part(number: int) -> random.Random:
    return random.Random(number)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(PARTS))
def test_conditions(photos, number):
    rng = part(number)
    for _ in range(TIMES // PARTS):
        where = mutated(rng.choice(CONDITIONS), rng)
        try:
            assert set(photos.select(where).tolist()) <= {0, 1, 2}, where
        except CorruptFile as error:  # nothing typed can be damage
            pytest.fail(f"{where!r}: {error}")
        except BitscaleError:
            continue


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(PARTS))
def test_batch_files(tmp_path, number):
    rng = part(number)
    for step in range(TIMES // PARTS):
        path = tmp_path / f"batch.{('csv', 'jsonl')[step % 2]}"
        text = mutated("\n".join(rng.choices(LINES, k=rng.randint(1, 3))), rng)
        path.write_bytes(text.encode(errors="surrogatepass"))
        try:
            assert isinstance(read_batch(path), list), text
        except BitscaleError:
            continue


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(PARTS))
def test_manifests(number):
    """With a checksum that is right, as whoever forges one would make it."""
    rng = part(number)
    good = parsed(3, MANIFEST, b"", checksum(3, MANIFEST, b""))
    assert isinstance(good, Manifest)
    accepted = 0
    for _ in range(TIMES // PARTS):
        body = mutated(MANIFEST, rng).encode(errors="replace").decode()
        dead = rng.randbytes(rng.choice([0, 0, 8, 7]))
        manifest = parsed(3, body, dead, checksum(3, body, dead))
        if isinstance(manifest, CorruptFile):
            continue
        accepted += 1
        assert isinstance(manifest.model, str)
        assert isinstance(manifest.sealed, int)
        assert all(isinstance(weight, float) and np.isfinite(weight) for weight in manifest.bit_weights)
        assert all("/" not in one.name and one.items >= 0 for one in manifest.segments)
    assert accepted < TIMES


def test_forged_manifests_through_the_door(tmp_path):
    """The same within a collection: it opens, or says that it is damaged."""
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        made.apply(codes=codes_for(made, 3), items=[NewItem(), NewItem(), NewItem()])
        made.compact()
        with made._database.reading() as connection:
            [(generation, body)] = connection.execute("SELECT generation, body FROM manifest LIMIT 1").fetchall()
    rng = random.Random(1)
    database = Database(made.path / "items.db")
    for _ in range(TIMES // 100):
        forged = mutated(body, rng).encode(errors="replace").decode()
        with database.writing() as connection:
            connection.execute("DELETE FROM manifest")
            row = (generation, forged, b"", checksum(generation, forged, b""))
            connection.execute("INSERT INTO manifest VALUES (?, ?, ?, ?)", row)
        try:
            with Collection.open(made.path, read_only=True) as reader:
                reader.search(codes_for(reader, 1), k=2)
        except BitscaleError:
            continue
    database.close()


def files(tmp_path) -> dict[str, bytes]:
    bs.ExactIndex(codes_for(hasher(), 20)).save(tmp_path / "x.bsi")
    hasher().save(tmp_path / "x.safetensors")
    return {name: (tmp_path / name).read_bytes() for name in ("x.bsi", "x.safetensors")}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ["x.bsi", "x.safetensors"])
@pytest.mark.parametrize("number", range(PARTS))
def test_files(tmp_path, name, number):
    rng, data = part(number), files(tmp_path)[name]
    for _ in range(TIMES // PARTS):
        raw = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(raw) + 1)
            how = rng.randrange(4)
            if how == 0:
                raw[at : at + 1] = rng.randbytes(1)
            elif how == 1:
                del raw[at : at + rng.choice([1, 4, 8, len(raw)])]
            elif how == 2:
                raw[at:at] = rng.randbytes(rng.choice([1, 4, 8]))
            else:
                raw[at : at + 8] = rng.choice([bytes(8), b"\xff" * 8, (1 << 40).to_bytes(8, "little")])
        (tmp_path / name).write_bytes(raw)
        try:
            if name == "x.bsi":
                with bs.ExactIndex.open(tmp_path / name) as index:
                    index.search(codes_for(hasher(), 1), 3)
            else:
                bs.load_hasher(tmp_path / name)
        except BitscaleError:
            continue
        assert zlib.crc32(bytes(raw)) == zlib.crc32(data) or name == "x.safetensors"
