"""Pictures made for tests, good and bad."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def texture(seed: int = 0, width: int = 40, height: int = 30) -> np.ndarray:
    """A smooth colour picture (height, width, 3), different for every seed."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (5, 6, 3), np.uint8))
    return np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))


def save(path: Path, seed: int = 0, width: int = 40, height: int = 30, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(texture(seed, width, height)).save(path, **options)
    return path


def encoded(kind: str, seed: int = 0, mode: str = "RGB", width: int = 40, height: int = 30, **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(texture(seed, width, height)).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, rows: bytes) -> bytes:
    """A grey PNG that claims a size, whatever data follows."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def bomb(width: int, height: int) -> bytes:
    """A small file of many pixels, all black."""
    packer = zlib.compressobj(9)
    row = bytes(width + 1)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return png(width, height, body)


def never_ending(folder: Path, name: str) -> dict[str, str]:
    """An environment for processes: who opens a file of that name leaves NAME.open beside it, and hangs."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"""
import pathlib, sys, time

def watch(event, details):
    if event == "open" and str(details[0]).endswith("/{name}"):
        pathlib.Path(str(details[0]) + ".open").touch()
        time.sleep(1000)

sys.addaudithook(watch)
""")
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
