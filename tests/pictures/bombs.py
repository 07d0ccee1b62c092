"""Small files that would take much time or memory to decode, one function a kind, none of which may be decoded.

`BOMBS` holds them by name. All are made here, byte by byte where no encoder would make them. `LOOPS` are files that
never end for who follows every pointer and every frame in them, and are pictures like others for who does not.
"""

import io
import struct
import zlib
from collections.abc import Callable
from functools import cache, partial

from PIL import Image

SIDE = 13_000  # 169 million pixels: within the limit on pixels, so that memory or time must stop what takes more of it
MOST = 13_377  # about the largest square within that limit
HUGE = 60_000  # a square far beyond it

BOMBS: dict[str, Callable[[], bytes]] = {}


def bomb(name: str, *arguments, **options):
    """Enter a maker under a name, with what it is called with; the same maker may make several kinds."""

    def enter(make):
        BOMBS[name] = partial(make, *arguments, **options)
        return make

    return enter


# ---------------------------------------------------------------------- PNG


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


@cache
def zeros(n: int) -> bytes:
    """So many zero bytes, deflated."""
    packer, block = zlib.compressobj(9), bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(n >> 20)]
    return b"".join([*parts, packer.compress(bytes(n & 0xFFFFF)), packer.flush()])


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of PNG's colour types


@bomb("png 16-bit grey", MOST, MOST, 16, 0)
@bomb("png 8-bit rgba", SIDE, SIDE, 8, 6)
@bomb("png 16-bit rgba", SIDE, SIDE, 16, 6)
@bomb("png grey with alpha", SIDE, SIDE, 8, 4)
@bomb("png 16-bit grey with alpha", SIDE, SIDE, 16, 4)
@bomb("png transparent palette", SIDE, SIDE, 8, 3, extra=chunk(b"PLTE", bytes(768)) + chunk(b"tRNS", bytes(256)))
@bomb("png transparent 1-bit palette", SIDE, SIDE, 1, 3, extra=chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", bytes(2)))
@bomb("png transparent colour", SIDE, SIDE, 8, 2, extra=chunk(b"tRNS", bytes(6)))
@bomb("png rgba, interlaced", SIDE, SIDE, 8, 6, interlaced=True)
@bomb("png of many pixels", HUGE, HUGE, 8, 2, rows=b"")
@bomb("png one line", 2**31 - 1, 1, 8, 0, rows=b"")
@bomb("png one column", 1, 2**31 - 1, 8, 0, rows=b"")
@bomb("png zTXt", 8, 8, 8, 0, extra=chunk(b"zTXt", b"a\0\0" + zeros(256 << 20)))
@bomb("png iTXt", 8, 8, 8, 0, extra=chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(256 << 20)))
@bomb("png iCCP", 8, 8, 8, 0, extra=chunk(b"iCCP", b"a\0\0" + zeros(256 << 20)))
@bomb("png many zTXt", 8, 8, 8, 0, extra=chunk(b"zTXt", b"a\0\0" + zeros(1 << 20)) * 80)
@bomb("png many iTXt", 8, 8, 8, 0, extra=chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(1 << 20)) * 80)
@bomb("apng rgba", SIDE, SIDE, 8, 6, extra=chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0)))
@bomb("apng frame of many pixels", 8, 8, 8, 0, extra=chunk(b"acTL", struct.pack(">II", 2, 0))
      + chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, HUGE, HUGE, 0, 0, 1, 1, 0, 0)))  # fmt: skip
def png(width, height, depth, colour, extra=b"", rows=None, interlaced=False):
    size = (width * depth * CHANNELS[colour] + 7) // 8 + 1
    rows = zeros(size * height + (height * 8 if interlaced else 0)) if rows is None else rows
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


# ---------------------------------------------------------------------- WebP


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def vp8l(width, height, alpha=0) -> bytes:
    """A lossless picture of one colour: five codes of one symbol each, which take no bits a pixel."""
    bits = (width - 1) | (height - 1) << 14 | alpha << 28 | (0b0001_0001_0001_0001_0001 << 3) << 32
    return b"\x2f" + bits.to_bytes(8, "little")


def vp8x(width, height, flags) -> tuple[bytes, bytes]:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"VP8X", bytes([flags, 0, 0, 0]) + sides


@bomb("webp lossless", SIDE, SIDE)
@bomb("webp lossless with alpha", SIDE, SIDE, alpha=1)
@bomb("webp wide", 16_383, 10_900)
@bomb("webp tall", 10_900, 16_383)
@bomb("webp of many pixels", 16_383, 16_383)
def webp(width, height, alpha=0):
    return riff((b"VP8L", vp8l(width, height, alpha)))


@bomb("webp animation", 13_000, 13_000, frames=50)
@bomb("webp animation on a large canvas", 13_000, 13_000, frames=3, frame=16)
@bomb("webp canvas of many pixels", HUGE, HUGE, frames=1, frame=16)
def animated_webp(width, height, frames, frame=None):
    w, h = (frame, frame) if frame else (width, height)
    head = bytes(6) + (w - 1).to_bytes(3, "little") + (h - 1).to_bytes(3, "little") + bytes([40, 0, 0, 0])
    image = vp8l(w, h, 1)
    body = head + b"VP8L" + struct.pack("<I", len(image)) + image + b"\0" * (len(image) % 2)
    return riff(vp8x(width, height, 0b10010), (b"ANIM", bytes(6)), *[(b"ANMF", body)] * frames)


# ---------------------------------------------------------------------- JPEG


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


TABLES = segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0\1" + bytes(15) + b"\0") + segment(
    0xC4, b"\x10\1" + bytes(15) + b"\0"
)  # fmt: skip


@bomb("jpeg 6,000 scans", 4_000, 4_000, [(0, 0, 0x10)] * 6_000)
@bomb("jpeg 20,000 first scans", 4_000, 4_000, [(0, 0, 0x00)] * 20_000)
@bomb("jpeg 6,000 scans of details", 4_000, 4_000, [(1, 63, 0x10)] * 6_000)
@bomb("jpeg scans of every frequency", 4_000, 4_000, [(i % 63 + 1, i % 63 + 1, 0x00) for i in range(8_000)])
@bomb("jpeg 6,000 scans in colour", 3_000, 3_000, [(0, 0, 0x10)] * 6_000, components=3)
@bomb("jpeg 4,000 scans, wide", 65_500, 250, [(0, 0, 0x10)] * 6_000)
@bomb("jpeg of many pixels", 65_500, 65_500, [(0, 0, 0)])
def jpeg(width, height, scans, components=1):
    """A progressive picture of many scans, each of which passes over all of it."""
    parts = b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))
    frame = segment(0xC2, struct.pack(">BHHB", 8, height, width, components) + parts)
    body = b"".join(
        segment(0xDA, bytes([1, i % components + 1, 0, start, end, bits])) + bytes(6)
        for i, (start, end, bits) in enumerate(scans)
    )
    return b"\xff\xd8" + TABLES + frame + body + b"\xff\xd9"


# ---------------------------------------------------------------------- GIF, BMP, PPM


@bomb("gif of many pixels", (16, 16), (65_535, 65_535), (16, 16))
@bomb("gif frame larger than its screen", (16, 16), (16, 16), (65_535, 65_535))
@bomb("gif transparent, small frame", (16, 16), (SIDE, SIDE), (16, 16))
@bomb("gif transparent", (SIDE, SIDE), (SIDE, SIDE), (SIDE, SIDE))
@bomb("gif without rows", (16, 16), (SIDE, SIDE), (SIDE, SIDE))
def gif(size, screen, frame):
    """A transparent picture of a size, that says it is of another, on a screen of a third."""
    file = io.BytesIO()
    Image.new("P", size, 1).save(file, "GIF", transparency=1)
    data = bytearray(file.getvalue())
    place = data.index(b"," + struct.pack("<HHHH", 0, 0, *size))
    data[6:10], data[place + 5 : place + 9] = struct.pack("<HH", *screen), struct.pack("<HH", *frame)
    return bytes(data)


@bomb("bmp of many pixels", HUGE, HUGE, 24)
@bomb("bmp of many pixels, upside down", HUGE, -HUGE, 24)
@bomb("bmp 1-bit of many pixels", HUGE, HUGE, 1)
@bomb("bmp run-length", HUGE, HUGE, 8, compression=1)
@bomb("bmp without rows", SIDE, SIDE, 24)
@bomb("bmp header without end", 8, 8, 24, header=2**31 - 1)
def bmp(width, height, depth, compression=0, header=40):
    info = struct.pack("<IiiHHIIiiII", header, width, height, 1, depth, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 14 + len(info), 0, 0, 14 + len(info)) + info + bytes(64)


for magic in ("P1", "P2", "P3", "P4", "P5", "P6", "Pf", "PF"):
    most = "" if magic in ("P1", "P4") else "\n255" if magic[1].isdigit() else "\n-1.0"
    BOMBS[f"{magic} of many pixels"] = partial(f"{magic}\n{HUGE} {HUGE}{most}\n".encode().__add__, bytes(64))
BOMBS["P6 without rows"] = partial(f"P6\n{SIDE} {SIDE}\n255\n".encode().__add__, bytes(64))
BOMBS["P6 comment without end"] = partial(b"P6\n#".__add__, b"x" * (8 << 20))
BOMBS["P6 number without end"] = partial(b"P6\n".__add__, b"1" * (8 << 20))


# ---------------------------------------------------------------------- TIFF

SHORT, LONG = 3, 4
TILE = (46_320, 46_336)  # of a picture of 16 x 16


def tiff(entries: dict[int, tuple[int, list[int]]], data: bytes, following: int = 0) -> bytes:
    """A little-endian TIFF of one directory; tag 273 or 324, the place of the data, is filled in."""
    n = len(entries)
    at = 8 + 2 + 12 * n + 4
    rows, rest = b"", b""
    for tag, (kind, values) in sorted(entries.items()):
        values = [at + 4096] if tag in (273, 324) else values
        raw = struct.pack(f"<{len(values)}{'H' if kind == SHORT else 'I'}", *values)
        field = raw.ljust(4, b"\0") if len(raw) <= 4 else struct.pack("<I", at + len(rest))
        rest += b"" if len(raw) <= 4 else raw
        rows += struct.pack("<HHI", tag, kind, len(values)) + field
    head = b"II*\0" + struct.pack("<IH", 8, n) + rows + struct.pack("<I", following)
    return (head + rest).ljust(at + 4096, b"\0") + data


def layout(width, height, depth=8, samples=3, compression=1, photometric=None) -> dict[int, tuple[int, list[int]]]:
    kind = photometric if photometric is not None else 2 if samples >= 3 else 1
    return {
        256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [depth] * samples), 259: (SHORT, [compression]),
        262: (SHORT, [kind]), 277: (SHORT, [samples]), 284: (SHORT, [1]),
    }  # fmt: skip


@bomb("tiff tile, raw", 1)
@bomb("tiff tile, lzw", 5)
@bomb("tiff tile, jpeg", 7)
@bomb("tiff tile, deflate", 8)
@bomb("tiff tile, packbits", 32773)
@bomb("tiff tile, zstd", 50000)
@bomb("tiff tile, fax", 4, depth=1, samples=1)
@bomb("tiff tile, wide", 8, tile=(2**31 - 16, 16))
@bomb("tiff tile, tall", 8, tile=(16, 2**31 - 16))
@bomb("tiff tile, grey 16-bit", 8, depth=16, samples=1)
def tiled(compression, depth=8, samples=3, tile=TILE):
    entries = layout(16, 16, depth, samples, compression)
    entries |= {322: (LONG, [tile[0]]), 323: (LONG, [tile[1]]), 324: (LONG, [0]), 325: (LONG, [64])}
    return tiff(entries, zeros(64).ljust(64, b"\0"))


@bomb("tiff deflate rgba", 8, 4)
@bomb("tiff deflate 16-bit grey", 16, 1, side=MOST)
@bomb("tiff deflate floats", 32, 1, floats=True)
@bomb("tiff deflate rgba of many pixels", 8, 4, side=HUGE, rows=b"")
@bomb("tiff with 65,535 samples", 8, 3, samples=65_535, rows=b"")
@bomb("tiff with samples of 65,535 bits", 65_535, 3, rows=b"", side=16)
def striped(depth, channels, side=SIDE, floats=False, rows=None, samples=None):
    rows = zeros(side * side * depth * channels // 8) if rows is None else rows
    entries = layout(side, side, depth, channels, 8)
    entries |= {278: (LONG, [side]), 273: (LONG, [0]), 279: (LONG, [len(rows)])}
    entries |= {338: (SHORT, [2])} if channels == 4 else {}
    entries |= {339: (SHORT, [3])} if floats else {}
    entries |= {277: (SHORT, [samples])} if samples else {}
    return tiff(entries, rows)


# ---------------------------------------------------------------------- AVIF and HEIC


@bomb("avif of many pixels", "AVIF", 65_535)
@bomb("avif of too many pixels for its data", "AVIF", SIDE, mode="RGBA")
@bomb("heic of many pixels", "HEIF", 65_535)
@bomb("heic of too many pixels for its data", "HEIF", SIDE)
def box(kind, side, mode="RGB"):
    """A small picture that says it is large."""
    import pillow_heif

    pillow_heif.register_heif_opener()
    file = io.BytesIO()
    Image.new(mode, (64, 64)).save(file, kind)
    small, large = (b"ispe" + struct.pack(">III", 0, one, one) for one in (64, side))
    assert small in file.getvalue()
    return file.getvalue().replace(small, large)


# ---------------------------------------------------------------------- loops


def exif(entry: int) -> bytes:
    """EXIF whose directory points to itself, as its sub-directory of a kind and as the one that follows."""
    return b"II*\0" + struct.pack("<IHHHIII", 8, 1, entry, LONG, 1, 8, 8)


def saved(kind: str, **options) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (16, 16), (1, 2, 3)).save(file, kind, **options)
    return file.getvalue()


def frames(kind: str, n: int) -> bytes:
    """A picture of many frames."""
    return saved(
        kind, save_all=True, append_images=[Image.new("RGB", (16, 16), (i % 256, i // 256, 9)) for i in range(n)]
    )


def self_following() -> bytes:
    """A TIFF whose directory is followed by itself, without end."""
    entries = layout(16, 16) | {278: (LONG, [16]), 273: (LONG, [0]), 279: (LONG, [768])}
    return tiff(entries, bytes(768), following=8)


LOOPS: dict[str, Callable[[], bytes]] = {
    "tiff directory that follows itself": self_following,
    "gif of 3,000 frames": partial(frames, "GIF", 3_000),
    "apng of 500 frames": partial(frames, "PNG", 500),
    "webp of 500 frames": partial(frames, "WEBP", 500),
    **{
        f"{kind} with a loop at EXIF tag {tag:#x}": partial(saved, kind, exif=b"Exif\0\0" + exif(tag))
        for kind in ("JPEG", "PNG", "WEBP")
        for tag in (0x8769, 0x8825, 0xA005, 0x014A)
    },
}
