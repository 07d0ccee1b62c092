"""Learning from marks: results called right or wrong give a query bits and weights of its own, on the spot.

A query with relaxed values r and bit weights w ranks items x in {-1, 1}^q by v.x, v = w r: the larger, the nearer. So
what is learned is v, and the same index answers by it: its signs are a code, its sizes the weights of the bits.

    least over v of   sum over marks of m_i log(1 + exp(-y_i (v.x_i - t) / s)) + sum over bits of (v_j - v0_j)^2 / 2 c_j

with y = 1 for right and -1 for wrong, v0 what the query began with, scaled to a perfect score of 1. The threshold t
lies between that and none, so that results that are all wrong are a reason to look elsewhere. c_j says how far a bit
may move: further where the query was in doubt (r near 0). Newton's method on one unknown a mark, a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.arrays import Float
from bitscale.codes import Codes, Relaxed, check_bits, check_same_space, check_weights
from bitscale.errors import InputError

STEPS = 25  # of Newton's method, at most
CLOSE = 1e-9  # where it ends
LONGEST = 4.0  # step, in margins: further away the curve it follows is another


@dataclass(frozen=True)
class LearningSettings:
    """How marks change a query; the defaults were chosen on training images: `results/feedback.json`."""

    threshold: float = 0.5  # t
    softness: float = 0.1  # s
    trust: float = 3.0  # how far marks may move a query, in all
    sure: float = 1.0  # how far a bit may move that the query is sure of; one that it is not: by 1 more
    wrong: float = 0.3  # m of a wrong mark; a right one counts 1


@dataclass(frozen=True, eq=False)
class Learned:
    """A query after feedback: search with `codes` and `weights=`."""

    codes: Codes  # one
    weights: Float  # (q,), all 0 or more


def learn(
    query: Codes | Relaxed,
    right: Codes,
    wrong: Codes,
    *,
    bits: int | None = None,
    weights: ArrayLike | None = None,
    settings: LearningSettings | None = None,
) -> Learned:
    """The query as marks make it.

    query    one; relaxed values tell more than a code
    right    codes of the items marked so; likewise `wrong`
    bits     learn the first so many bits, those that searches will compare; the others get no weight
    weights  what the query was searched with, where it was not the model's
    """
    if len(query) != 1:
        raise InputError(f"feedback is about one query. Got {len(query)}.")
    if not len(right) + len(wrong):
        raise InputError("there is nothing to learn from. Mark at least one result as right or wrong.")
    for codes in (right, wrong):
        check_same_space(codes, query, "the query")
    used, how = check_bits(bits, query.n_bits), settings or LearningSettings()
    own = query.bit_weights if weights is None else check_weights(weights, query.n_bits, "weights")
    values = (query.values if isinstance(query, Relaxed) else query.signs().astype(np.float64))[0, :used]
    start = values * own[:used]
    perfect = float(np.abs(start).sum())
    if not perfect:
        raise InputError("this query tells nothing: all bits that are compared are in doubt or weigh nothing.")
    x = np.concatenate([right.signs(), wrong.signs()])[:, :used].astype(np.float64)  # (marks, used)
    freedom = (how.sure + 1 - np.abs(values)) * how.trust / used**2
    moved = fit(start / perfect, x, np.arange(len(x)) < len(right), freedom, how) * perfect
    full = np.concatenate([moved, np.zeros(query.n_bits - used)])
    return Learned(Codes.from_signs(full[None], query.bit_weights, model=query.model), np.abs(full))


def fit(start: Float, x: Float, right: NDArray[np.bool_], freedom: Float, how: LearningSettings) -> Float:
    """v of the module's equation, (q,): it is v0 + c X^T a for some a (marks,), so a is what is looked for."""
    signs = np.where(right, 1.0, -1.0)
    counts = np.where(right, 1.0, how.wrong)
    kernel = (x * freedom) @ x.T  # (marks, marks)
    offset = x @ start - how.threshold
    a = np.zeros(len(x))
    for _ in range(STEPS):
        margin = signs * (offset + kernel @ a) / how.softness
        slack = 1 / (1 + np.exp(np.clip(margin, -500, 500)))
        curvature = counts * slack * (1 - slack) / how.softness**2
        wanted = counts * slack * signs / how.softness  # what a is at the least
        step = np.linalg.solve(np.eye(len(x)) + curvature[:, None] * kernel, wanted - a)
        reach = float(np.abs(kernel @ step).max()) / how.softness
        a = a + step * min(1.0, LONGEST / max(reach, 1e-12))
        if np.abs(step).max() < CLOSE * max(1.0, float(np.abs(a).max())):
            break
    return np.asarray(start + freedom * (x.T @ a))
