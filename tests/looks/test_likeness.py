"""Likeness: copies are told whatever was done to them, and how they lie; other pictures and empty ones are not."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

import bitscale as bs
from bitscale.errors import CorruptFile
from bitscale.looks.likeness import COPY, OTHER, PERHAPS, VARIANT, compare, framed, in_colour
from bitscale.looks.look import FORMS, laid, looks_of, perceptual_hashes
from tests.looks.scenes import as_jpeg, looks, scene

T = Image.Transpose
COPIES = {
    "as it is": (lambda p: p, ""),
    "jpeg": (as_jpeg, ""),
    "half": (lambda p: p.resize((p.width // 2, p.height // 2)), ""),
    "cropped": (lambda p: p.crop((6, 3, p.width - 4, p.height - 6)), ""),
    "mirrored": (lambda p: p.transpose(T.FLIP_LEFT_RIGHT), "mirrored"),
    "upside down": (lambda p: p.transpose(T.FLIP_TOP_BOTTOM), "upside down"),
    "turned 180": (lambda p: p.transpose(T.ROTATE_180), "turned by 180 degrees"),
    "turned 90": (lambda p: p.transpose(T.ROTATE_90), "turned by 90 degrees"),
    "turned 270": (lambda p: p.transpose(T.ROTATE_270), "turned by 270 degrees"),
    "transposed": (lambda p: p.transpose(T.TRANSPOSE), "mirrored and turned"),
    "paler": (lambda p: ImageEnhance.Color(p).enhance(0.6), ""),
}
VARIANTS = {
    "grey": (lambda p: p.convert("L"), "other colours"),
    "other colours": (lambda p: swapped(p), "other colours"),
    "framed": (lambda p: ImageOps.expand(p, 8, "white"), ""),
}  # fmt: skip


def swapped(picture):
    """Blue for red, at the same grey levels."""
    grey, blue, red = picture.convert("YCbCr").split()
    return Image.merge("YCbCr", (grey, red, blue)).convert("RGB")


def big(seed):
    return scene(seed, (400, 300))


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_told_and_how_they_lie(name):
    change, says = COPIES[name]
    told = compare(looks(*map(big, range(5))), looks(*(change(big(i)) for i in range(5))))
    assert told.kind.tolist() == [COPY] * 5
    assert [told.says(row) for row in range(5)] == [says] * 5


@pytest.mark.parametrize("name", VARIANTS)
def test_what_was_done_to_a_picture_makes_it_a_variant(name):
    change, says = VARIANTS[name]
    told = compare(looks(*map(big, range(4))), looks(*(change(big(i)) for i in range(4))))
    assert (told.kind >= PERHAPS).all()
    assert (told.kind < COPY).all()
    if says:
        assert told.kind.tolist() == [VARIANT] * 4
        assert told.says(0) == says


def test_other_pictures_and_empty_ones_are_no_copies():
    some, others = looks(*map(big, range(40))), looks(*map(big, range(100, 140)))
    assert (compare(some, others).kind < VARIANT).all()
    empty = looks(Image.new("RGB", (400, 300), "white"), Image.new("RGB", (400, 300), "black"))
    assert compare(empty, empty).kind.tolist() == [OTHER, OTHER]
    assert len(compare(some[np.empty(0, np.int64)], others[np.empty(0, np.int64)]).kind) == 0


def test_words_on_a_picture_do_not_hide_it():
    marked = [big(i) for i in range(4)]
    for picture in marked:
        ImageDraw.Draw(picture).rectangle((100, 140, 300, 160), "white")
    assert (compare(looks(*map(big, range(4))), looks(*marked)).kind >= PERHAPS).all()


def test_clothes_of_the_sample_are_no_copies_of_one_another():
    images = bs.load_dataset("sample").query.images
    pictures = [Image.fromarray(images[i][..., 0]) for i in range(400)]
    every = looks(*pictures)
    grey = every.grey.reshape(400, -1)
    grey -= grey.mean(axis=1, keepdims=True)
    grey /= np.linalg.norm(grey, axis=1, keepdims=True)
    alike = grey @ grey.T
    np.fill_diagonal(alike, -1)
    nearest = alike.argmax(axis=1)
    assert (compare(every, every[nearest]).kind < VARIANT).all()
    double = looks(*(picture.resize((56, 56)) for picture in pictures[:50]))
    assert (compare(every[np.arange(50)], double).kind == COPY).mean() > 0.9


def neighbours(every):
    """Every picture and the one most like it."""
    grey = every.grey.reshape(len(every), -1)
    grey -= grey.mean(axis=1, keepdims=True)
    grey /= np.linalg.norm(grey, axis=1, keepdims=True)
    alike = grey @ grey.T
    np.fill_diagonal(alike, -1)
    return every[alike.argmax(axis=1)]


def test_small_pictures_that_are_much_alike_are_not_even_perhaps_the_same():
    images = bs.load_dataset("sample").query.images
    every = looks(*(Image.fromarray(images[i][..., 0]) for i in range(200)))
    assert (compare(every, neighbours(every)).kind == OTHER).all()


def test_small_pictures_full_of_detail_are_told_though_changed():
    def blotches(seed):
        rough = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
        return Image.fromarray(rough).resize((60, 45), Image.Resampling.BICUBIC)

    ours = looks(*map(blotches, range(4)))
    for change in (lambda p: p.convert("L"), ImageOps.mirror, lambda p: p.resize((30, 22)), swapped):
        told = compare(ours, looks(*(change(blotches(i)) for i in range(4))))
        assert (told.kind >= VARIANT).all()
    assert (compare(ours, looks(*(blotches(i + 4) for i in range(4)))).kind < VARIANT).all()


@pytest.mark.slow
def test_plain_pictures_must_agree_in_detail():
    """Clothes on black, as large as photographs: other ones are no copies and seldom variants, though outlines fit."""
    images = bs.load_dataset("sample").query.images
    pictures = [Image.fromarray(images[i][..., 0]).resize((300, 300), Image.Resampling.LANCZOS) for i in range(200)]
    every = looks(*pictures)
    kinds = compare(every, neighbours(every)).kind
    assert (kinds < COPY).all()
    assert (kinds == VARIANT).mean() < 0.15
    few = np.arange(60)
    assert (compare(every[few], looks(*map(as_jpeg, pictures[:60]))).kind == COPY).mean() > 0.9
    smaller = looks(*(picture.resize((150, 150)) for picture in pictures[:60]))
    assert (compare(every[few], smaller).kind >= VARIANT).mean() > 0.9


def test_the_hash_of_a_form_is_the_hash_of_the_picture_laid_that_way():
    picture = big(3)
    grey = looks(picture).grey
    ways = [T.FLIP_LEFT_RIGHT, T.FLIP_TOP_BOTTOM, T.ROTATE_180, T.TRANSPOSE, T.ROTATE_270, T.ROTATE_90, T.TRANSVERSE]
    for form, way in enumerate(ways, 1):
        ours = perceptual_hashes(np.ascontiguousarray(laid(grey, form)))
        theirs = perceptual_hashes(looks(picture.transpose(way)).grey)
        assert np.bitwise_count(ours ^ theirs).sum() <= 4, FORMS[form]
    near = perceptual_hashes(looks(as_jpeg(picture)).grey)
    assert np.bitwise_count(near ^ perceptual_hashes(grey)).sum() <= 4
    assert np.bitwise_count(perceptual_hashes(looks(big(4)).grey) ^ near).sum() > 10


def test_frames_and_colours_are_seen():
    pictures = looks(big(1), ImageOps.expand(big(1), 16, "black"), big(1).convert("L"))
    assert framed(pictures).tolist() == [False, True, False]
    assert in_colour(pictures).tolist() == [True, True, False]


def test_a_look_that_is_cut_short_is_refused():
    with pytest.raises(CorruptFile, match="cut short"):
        looks_of([b"abc"], [(1, 1)])
