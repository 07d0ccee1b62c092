"""Likeness: what two pictures are to each other by their looks, once one is laid over the other.

copy      the same picture: grey levels agree nearly everywhere, colours do, and so do the proportions
variant   the same picture with something done to it: in grey or other colours, with words or a frame, a part of it
perhaps   much alike; not enough by itself
other     nothing that looks could tell, or nothing on them to compare

Two shirts on white look as much alike as two copies of one shirt: of pictures that are small or plain, with little on
them but an outline, more is asked. Plain ones must agree in detail too, hardly moved and not stretched.

The limits were set on 17 kinds of edits of 140 photographs against the most alike of other pairs, those for plain
pictures on shirts and boots besides (`benchmarks/duplicates.py --tune`): copies reach far more than COPY, others less.
SMALL_VARIANT alone was set because of one small photograph outside of these, and held against the sample's clothes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Bool, Float32
from bitscale.looks.align import Fit, fit_over, grid, sampled
from bitscale.looks.look import FORMS, UNDONE, Looks, each_laid
from bitscale.pictures.look import COLOUR_SIDE, SIDE

OTHER, PERHAPS, VARIANT, COPY = range(4)
PAIRS = 250  # compared at a time
COPY_WHOLE, COPY_CELLS = 0.95, (0.94, 0.97)  # correlations: of all, of three cells in four, of half of them
VARIANT_WHOLE, VARIANT_CELLS = 0.8, 0.8  # where colours agree
RECOLOURED_WHOLE, RECOLOURED_CELLS = 0.95, (0.85, 0.95)  # where they do not
PERHAPS_CELLS = 0.5
SMALL = 64  # pixels of a side: below it two shirts look as much alike as two copies of one
SMALL_WHOLE, SMALL_CELLS, SMALL_MOVED = 0.997, (0.985, 0.995), 0.1
SMALL_VARIANT = 0.98  # correlation of all, and of half of the cells, where small pictures are not plain
BUSY, CHANGE = 0.75, 4.0  # share of a picture where grey changes by so many levels to the next: with less it is plain
PLAIN_CELLS, PLAIN_DETAIL, PLAIN_MOVED, PLAIN_STRETCH = 0.9, 0.9, 0.15, 1.12
OVERLAP = 0.6  # share of the first picture
ASPECT = 0.15  # by which width to height may differ between copies: they may be cropped
COLOUR, COLOUR_SHARE = 2.5, 0.25  # levels by which colours of copies differ, or share of how strong they are
GAIN = 0.4, 2.5  # colours may be so much weaker or stronger all over
GREY = 2.0  # levels: less colour than this is none


class Likeness(NamedTuple):
    """For pairs of pictures: copies, variants, much alike, or none of these."""

    kind: NDArray[np.int64]  # OTHER, PERHAPS, VARIANT or COPY
    form: NDArray[np.int64]  # how the second lies over the first, a place in FORMS
    coloured: Bool  # whether colours agree
    same: Float32  # how much alike, 0 to 1: to choose among several

    def says(self, row: int, back: bool = False) -> str:
        """In words, how the second picture differs from the first (`back`: the first from the second); may be empty."""
        form = int(self.form[row])
        form = UNDONE.get(form, form) if back else form
        words = [FORMS[form], *(["other colours"] if not self.coloured[row] else [])]
        return ", ".join(word for word in words if word)


def compare(first: Looks, second: Looks) -> Likeness:
    """Whether each picture of `second` is a copy or a variant of the one in its place in `first`."""
    parts = []
    for start in range(0, len(first), PAIRS):
        rows = np.arange(start, min(start + PAIRS, len(first)))
        parts.append(_compared(first[rows], second[rows]))
    if not parts:
        nothing = np.empty(0, np.int64)
        return Likeness(nothing, nothing, np.empty(0, np.bool_), np.empty(0, np.float32))
    return Likeness(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _compared(first: Looks, second: Looks) -> Likeness:
    fit = fit_over(first.grey, second.grey)
    coloured = colours_agree(first, second, fit)
    three, half = fit.cells[:, 0], fit.cells[:, 1]
    over = fit.overlap >= OVERLAP
    copy = (fit.whole >= COPY_WHOLE) & (three >= COPY_CELLS[0]) & (half >= COPY_CELLS[1])
    copy &= over & coloured & same_shape(first, second, fit.form)
    recoloured = (fit.whole >= RECOLOURED_WHOLE) & (three >= RECOLOURED_CELLS[0]) & (half >= RECOLOURED_CELLS[1])
    variant = over & np.where(coloured, (fit.whole >= VARIANT_WHOLE) & (half >= VARIANT_CELLS), recoloured)
    small, plain = small_both(first, second), plain_one(first, second)
    copy &= ~(small | plain) | (same_in_all(fit) & (~small | (fit.form == 0)))
    variant &= ~small & (~plain | same_when_plain(fit))
    variant |= small & ~plain & over & same_when_small(fit)
    perhaps = (half >= PERHAPS_CELLS) & ~small
    kind = np.where(copy, COPY, np.where(variant, VARIANT, np.where(perhaps, PERHAPS, OTHER)))
    return Likeness(kind, fit.form, coloured, np.clip((fit.whole + half) / 2, 0, 1))


def small_both(first: Looks, second: Looks) -> Bool:
    """Pairs of which less can be seen: both are small."""
    sides = [np.minimum(one.width, one.height) for one in (first, second)]
    return np.asarray((sides[0] > 0) & (np.maximum(*sides) < SMALL))


def plain_one(first: Looks, second: Looks) -> Bool:
    """Pairs of which one at least is plain: on most of it nothing changes."""
    busy = []
    for grey in (first.grey, second.grey):
        change = np.abs(np.diff(grey, axis=1))[:, :, 1:] + np.abs(np.diff(grey, axis=2))[:, 1:]
        busy.append((change > CHANGE).mean(axis=(1, 2)))
    return np.asarray(np.minimum(*busy) < BUSY)


def same_when_plain(fit: Fit) -> Bool:
    """Plain pictures are the same one only if they agree in detail, hardly moved and not stretched."""
    moved = np.abs(fit.moved - np.eye(2, 3, dtype=np.float32)).max(axis=(1, 2)) <= PLAIN_MOVED
    turned = fit.moved[:, :, :2]
    square, product = np.square(turned).sum(axis=(1, 2)), np.abs(np.linalg.det(turned))
    stretch = (PLAIN_STRETCH + 1 / PLAIN_STRETCH) * product  # of sides a and b: a / b + b / a = square / product
    alike = (fit.cells[:, 1] >= PLAIN_CELLS) & (fit.detail >= PLAIN_DETAIL)
    return np.asarray(moved & alike & (square <= stretch))


def same_when_small(fit: Fit) -> Bool:
    """Small pictures full of detail are variants if that detail agrees, whatever their colours and how they lie."""
    return np.asarray((fit.whole >= SMALL_VARIANT) & (fit.cells[:, 1] >= SMALL_VARIANT))


def same_in_all(fit: Fit) -> Bool:
    """Small or plain pictures are copies only if they agree in nearly everything; small ones only as they lie."""
    still = np.abs(fit.moved - np.eye(2, 3, dtype=np.float32)).max(axis=(1, 2)) <= SMALL_MOVED
    alike = (fit.whole >= SMALL_WHOLE) & (fit.cells[:, 0] >= SMALL_CELLS[0]) & (fit.cells[:, 1] >= SMALL_CELLS[1])
    return np.asarray(still & alike)


def same_shape(first: Looks, second: Looks, form: NDArray[np.int64]) -> Bool:
    """Whether width and height are in the same proportion, as the second lies; unknown sizes pass."""
    turned = form >= 4
    wide = np.where(turned, second.height, second.width)
    high = np.where(turned, second.width, second.height)
    sizes = np.stack([first.width, first.height, wide, high]).astype(np.float64)
    known = (sizes > 0).all(axis=0)
    sizes = np.maximum(sizes, 1)
    ratio = np.log(sizes[0] / sizes[1]) - np.log(sizes[2] / sizes[3])
    return np.asarray(~known | (np.abs(ratio) <= np.log1p(ASPECT)))


def colours_agree(first: Looks, second: Looks, fit: Fit) -> Bool:
    """Whether colours are the same where the pictures overlap, up to how strong they are all over."""
    there = fit.moved @ grid(COLOUR_SIDE)
    inside = (np.abs(there) <= 1).all(axis=1)[..., None]
    count = inside.sum(axis=1)[:, 0] + 1e-6
    a = first.colours.reshape(len(first), -1, 2) * inside
    b = sampled(each_laid(second.colours, fit.form), there) * inside
    gain = (a * b).sum(axis=(1, 2)) / (np.square(b).sum(axis=(1, 2)) + 1e-3)
    gain = np.clip(gain, *GAIN)[:, None, None]
    apart = np.sqrt(np.square(a - gain * b).sum(axis=2)).sum(axis=1) / count
    strong = [np.sqrt(np.square(one).sum(axis=2)).sum(axis=1) / count for one in (a, b)]
    return np.asarray((apart <= COLOUR) | (apart <= COLOUR_SHARE * np.maximum(*strong)))


def in_colour(looks: Looks) -> Bool:
    """Which pictures have colours."""
    return np.asarray(np.sqrt(np.square(looks.colours).sum(axis=3)).mean(axis=(1, 2)) > GREY)


def framed(looks: Looks) -> Bool:
    """Which pictures have an edge of one colour all around, as a frame has."""
    grey = looks.grey
    sides = np.stack([grey[:, 0], grey[:, -1], grey[:, :, 0], grey[:, :, -1]], axis=1)  # (n, 4, SIDE)
    level = np.abs(sides - sides.mean(axis=(1, 2), keepdims=True)).mean(axis=(1, 2))
    return np.asarray((level < 3.0) & (grey.reshape(len(grey), SIDE * SIDE).std(axis=1) > 3.0))
