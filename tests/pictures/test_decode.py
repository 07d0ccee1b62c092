import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitscale.errors import DataError, UnreadablePicture
from bitscale.pictures import decode
from bitscale.pictures.arrays import fit_pixels, read_picture
from bitscale.pictures.decode import FORMATS, Limits, readable_formats
from bitscale.pictures.form import Form
from bitscale.pictures.workers import decode_files
from tests.pictures.bombs import tiled
from tests.pictures.made import bomb, encoded, png, save, texture

GREY28 = Form((28, 28), 1)


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("kind", "mode", "lossless"),
    [
        ("PNG", "RGB", True), ("PNG", "L", True), ("PNG", "P", True), ("PNG", "1", True), ("PNG", "RGBA", True),
        ("PNG", "LA", True), ("JPEG", "RGB", False), ("JPEG", "L", False), ("JPEG", "CMYK", False),
        ("WEBP", "RGB", False), ("WEBP", "RGBA", False), ("GIF", "P", True), ("BMP", "RGB", True),
        ("TIFF", "RGB", True), ("TIFF", "CMYK", True), ("TIFF", "F", True), ("AVIF", "RGB", False),
        ("PPM", "RGB", True),
    ],
)  # fmt: skip
def test_every_format_and_mode_becomes_colour_or_grey(tmp_path, kind, mode, lossless):
    options = {"quality": 95} if kind in ("JPEG", "WEBP", "AVIF") else {}
    path = put(tmp_path / "a", encoded(kind, 3, mode, **options))
    found = read_picture(path)
    assert (found.format, found.width, found.height, found.pixels.shape) == (kind, 40, 30, (30, 40, 3))
    wanted = np.asarray(Image.fromarray(texture(3)).convert(mode).convert("RGB"), np.float64)
    assert np.abs(found.pixels - wanted).mean() <= (0 if lossless else 6)
    grey = read_picture(path, GREY28)
    assert grey.pixels.shape == (28, 28, 1)
    assert grey.pixels.dtype == np.uint8


def test_facts_are_those_of_the_bytes_decoded(tmp_path):
    path = save(tmp_path / "a.png")
    os.utime(path, ns=(5, 123_456_789))
    found = read_picture(path)
    assert found.content == hashlib.sha256(path.read_bytes()).digest()
    assert (found.size, found.modified) == (path.stat().st_size, 123_456_789)


def test_what_is_hashed_is_what_is_decoded(tmp_path, monkeypatch):
    """Another picture comes into the file's place as soon as it was read."""
    path, read = save(tmp_path / "a.png", 1), decode._read
    content, pixels = hashlib.sha256(path.read_bytes()).digest(), read_picture(path).pixels

    def replaced(*given):
        data = read(*given)
        save(path, 2)
        return data

    monkeypatch.setattr(decode, "_read", replaced)
    found = read_picture(path)
    assert found.content == content
    assert np.array_equal(found.pixels, pixels)


def naive_fit(pixels, size, middle=False):
    """The form written out: the middle square by slicing, then Pillow's bilinear resize."""
    if middle:
        side = min(pixels.shape[:2])
        top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
        pixels = pixels[top : top + side, left : left + side]
    planes = [
        Image.fromarray(plane).resize((size[1], size[0]), Image.Resampling.BILINEAR)
        for plane in np.moveaxis(pixels, 2, 0)
    ]
    return np.stack([np.asarray(plane) for plane in planes], axis=-1)


def test_files_and_arrays_take_one_form(tmp_path):
    path, pixels = save(tmp_path / "a.png", width=70, height=41), texture(0, 70, 41)
    assert np.array_equal(read_picture(path).pixels, pixels)
    assert np.array_equal(read_picture(path, Form((32, 24))).pixels, naive_fit(pixels, (32, 24)))
    middle = naive_fit(pixels, (32, 32), middle=True)
    assert np.array_equal(read_picture(path, Form((32, 32), middle=True)).pixels, middle)
    assert np.array_equal(read_picture(path, Form((41, 70))).pixels, pixels)
    assert np.array_equal(fit_pixels(pixels, Form((32, 32), middle=True)), middle)
    assert np.array_equal(fit_pixels(pixels[..., :1], GREY28), naive_fit(pixels[..., :1], (28, 28)))
    assert fit_pixels(pixels[..., 0], Form()).shape == (41, 70, 3)


@pytest.mark.parametrize("form", [GREY28, Form((28, 28)), Form((24, 12)), Form((60, 60), middle=True)])
def test_large_jpegs_are_decoded_small_and_look_the_same(tmp_path, form):
    pixels = texture(1, 1200, 800)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", quality=95)
    found = read_picture(tmp_path / "a.jpg", form)
    assert (found.width, found.height) == (1200, 800)
    assert np.abs(found.pixels - fit_pixels(pixels, form).astype(np.float64)).mean() < 2


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_pictures_stand_upright(tmp_path, kind, turn):
    pixels = np.zeros((300, 600, 3), np.uint8)
    pixels[:150, :300] = 255  # the top left
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.fromarray(pixels).save(tmp_path / "a", kind, exif=exif.tobytes())
    top, left = {1: (1, 1), 2: (1, 0), 3: (0, 0), 4: (0, 1), 5: (1, 1), 6: (1, 0), 7: (0, 0), 8: (0, 1)}[turn]
    for form, shape in ((Form(), (300, 600) if turn < 5 else (600, 300)), (Form((40, 20)), (40, 20))):
        found = read_picture(tmp_path / "a", form).pixels
        assert found.shape == (*shape, 3)
        rows = slice(None, shape[0] // 3) if top else slice(-(shape[0] // 3), None)
        columns = slice(None, shape[1] // 3) if left else slice(-(shape[1] // 3), None)
        assert found[rows, columns].mean() > 240
        assert 60 < found.mean() < 68


def test_deep_grey_and_transparency(tmp_path):
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    for name in ("a.png", "a.tif"):
        Image.fromarray(ramp).save(tmp_path / name)
        assert np.abs(read_picture(tmp_path / name).pixels[..., 0] - ramp / 257.0).max() <= 1
    Image.fromarray((ramp / 65535).astype(np.float32)).save(tmp_path / "f.tif")
    assert np.abs(read_picture(tmp_path / "f.tif", Form((16, 16), 1)).pixels[..., 0] - ramp / 257.0).max() <= 1
    clear = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    clear.save(tmp_path / "clear.png")
    assert (read_picture(tmp_path / "clear.png").pixels == 255).all()
    palette = Image.new("P", (4, 4), 3)
    palette.putpalette([0] * 768)
    palette.save(tmp_path / "p.gif", transparency=3)
    assert (read_picture(tmp_path / "p.gif", Form((4, 4), 1)).pixels == 255).all()


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 3, 6, 8])
def test_heic(tmp_path, turn):
    """As phones write it, turned by EXIF; in a worker too, which has the reader for itself."""
    import pillow_heif

    pixels = np.asarray(Image.fromarray(texture(2, 96, 64)).rotate({1: 0, 3: 180, 6: 90, 8: 270}[turn], expand=True))
    exif = Image.Exif()
    exif[0x0112] = turn
    made = pillow_heif.from_pillow(Image.fromarray(pixels))
    made.save(tmp_path / "a.heic", quality=95, exif=exif.tobytes())
    here = read_picture(tmp_path / "a.heic")
    assert (here.format, here.pixels.shape) == ("HEIF", (64, 96, 3))
    assert np.abs(here.pixels - texture(2, 96, 64).astype(np.float64)).mean() < 6
    (there,) = decode_files([str(tmp_path / "a.heic")], GREY28)
    assert np.array_equal(there.pixels, read_picture(tmp_path / "a.heic", GREY28).pixels)
    assert pillow_heif.options.DECODE_THREADS == 1  # each would take a share of the memory allowed


def test_where_heic_cannot_be_read_the_cure_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(decode, "_load_heif", lambda: None)
    monkeypatch.setattr(decode, "_formats", lambda: ("JPEG", "PNG"))
    with pytest.raises(UnreadablePicture, match=r"pip install 'bitscale\[heic\]'"):
        read_picture(put(tmp_path / "a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(200)))


def test_the_first_frame_of_many(tmp_path):
    frames = [Image.fromarray(texture(i)) for i in range(3)]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:], lossless=True)
    assert np.array_equal(read_picture(tmp_path / "a.webp").pixels, texture(0))
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_picture(tmp_path / "a.gif").pixels.shape == (30, 40, 3)


def test_a_damaged_exif_block_loses_no_picture(tmp_path):
    whole = encoded("JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01" + b"\xff" * 40)
    assert read_picture(put(tmp_path / "a.jpg", whole), GREY28).pixels.shape == (28, 28, 1)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"])
def test_cut_and_mangled_files_say_so_in_one_line(tmp_path, kind):
    whole = encoded(kind, width=200, height=150)
    rng = np.random.default_rng(0)
    for cut in (0, 1, 5, 20, len(whole) // 3, len(whole) // 2):
        with pytest.raises(UnreadablePicture) as caught:
            read_picture(put(tmp_path / "a", whole[:cut]), GREY28)
        assert "\n" not in str(caught.value)
        assert caught.value.lasting
        assert str(tmp_path / "a") in str(caught.value)
    for _ in range(30):
        mangled = np.frombuffer(whole, np.uint8).copy()
        mangled[rng.integers(0, len(whole), 12)] = rng.integers(0, 256, 12)
        try:
            read_picture(put(tmp_path / "a", mangled.tobytes()), Form((16, 16)))
        except UnreadablePicture as error:
            assert "\n" not in error.reason  # noqa: PT017


def test_what_is_no_picture(tmp_path):
    for name, data, said in (
        ("a.txt", b"hello, world", "none of JPEG"),
        ("a.jpg", b"%PDF-1.4", "none of JPEG"),
        ("a.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "none of JPEG"),
        (
            "a.heic",
            b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(200),
            "cannot be read" if "HEIF" in readable_formats() else r"pip install 'bitscale\[heic\]'",
        ),
        ("empty.jpg", b"", "empty"),
    ):
        with pytest.raises(UnreadablePicture, match=said) as caught:
            read_picture(put(tmp_path / name, data))
        assert caught.value.lasting
    assert set(readable_formats()) <= set(FORMATS)


def test_what_may_be_another_time_is_not_held_against_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    for name, said in (
        ("gone.jpg", "is not there"),
        ("pipe.jpg", "something else"),
        ("folder.jpg", "Is a directory"),
        ("loop.jpg", "cannot be opened"),
        ("a\0b.jpg", "cannot be opened"),
        ("n" * 300, "cannot be opened"),
    ):
        with pytest.raises(UnreadablePicture, match=said) as caught:
            read_picture(str(tmp_path / name))
        assert not caught.value.lasting
    with pytest.raises(DataError):
        read_picture(tmp_path / "gone.jpg")


def test_more_pixels_or_bytes_than_allowed(tmp_path):
    path = put(tmp_path / "a.png", bomb(400, 300))
    assert not read_picture(path, limits=Limits(pixels=120_000)).pixels.any()
    with pytest.raises(UnreadablePicture, match=r"400 x 300 pixels, 119,999 in all allowed.*Make it smaller"):
        read_picture(path, limits=Limits(pixels=119_999))
    with pytest.raises(UnreadablePicture, match="safe to read"):
        read_picture(path, limits=Limits(file=100))
    with pytest.raises(UnreadablePicture, match="larger than is safe"):
        read_picture(put(tmp_path / "b.png", png(100_000, 100_000, b"")))


def test_tiles_count_as_pictures_do(tmp_path):
    """A picture of 16 x 16 whose one tile is larger: refused before memory is taken for it."""
    path = put(tmp_path / "a.tif", tiled(8, tile=(400, 304)))
    with pytest.raises(UnreadablePicture, match=r"tiles of 400 x 304 pixels, 121,599 in all allowed"):
        read_picture(path, limits=Limits(pixels=121_599))
