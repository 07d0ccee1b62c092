"""From a method and a split to a report in one call: fit at one length or at each, evaluate, lose nothing to a stop.

Fitted models and features that are dear to make are kept in a folder until the whole is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bitscale.data.split import Split
from bitscale.data.unfinished import finished, part_identity, unfinished
from bitscale.errors import BitscaleError
from bitscale.evaluation.encoding import Progress
from bitscale.evaluation.fitting import fit_in_folder, hasher_identity, keep_features
from bitscale.evaluation.report import Report
from bitscale.evaluation.run import check_request, evaluate
from bitscale.hashers.base import Hasher
from bitscale.hashers.registry import load_hasher


def fit_and_evaluate(
    make: Callable[[int], Hasher],
    split: Split,
    *,
    bits: Sequence[int],
    metrics: Sequence[str],
    each: bool = False,
    save: Path | None = None,
    ranking: str = "weighted",
    seed: int = 0,
    keep_rankings: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Fit what `make(n_bits)` gives on the split's training part and evaluate it at every length of `bits`.

    each      fit a hasher at each length; otherwise one at the longest, whose first bits are the shorter codes
    save      a file for the fitted hasher; not with `each`, which fits several
    The other arguments are those of `evaluate`.
    """
    groups = [[used] for used in bits] if each else [list(bits)]
    for group in groups:
        check_request(make(max(group)), group, list(metrics), ranking, keep_rankings)
    first = make(max(bits))
    folder = study_folder(first, split, [bits, each])
    how: dict[str, Any] = {"metrics": list(metrics), "ranking": ranking, "seed": seed}
    reports = []
    for group in groups:
        fitted = fit_or_load(make(max(group)), split, folder, progress)
        if save:
            fitted.save(save)
        reports.append(evaluate(fitted, split, bits=group, keep_rankings=keep_rankings, progress=progress, **how))
    finished(folder)
    return Report.join(reports)


def study_folder(hasher: Hasher, split: Split, asked: Any) -> Path:
    """The folder that keeps the work on a method, a split and a request until it is done."""
    parts = [part_identity(part) for part in (split.train, split.query, split.database)]
    return unfinished(f"evaluate-{split.name}-{hasher.name}", [hasher_identity(hasher), parts, asked])


def fit_or_load(hasher: Hasher, split: Split, folder: Path, progress: Progress | None) -> Hasher:
    """The hasher fitted now, or as a stopped call left it in `folder`."""
    tell = progress or (lambda doing, done, total: None)
    doing = f"fit {hasher.name} at {hasher.n_bits} bits"
    model = folder / f"{hasher.n_bits}.safetensors"
    cache = hasher.extractor.cache
    fitted = _kept(model)
    if fitted is None:
        tell(doing, 0, 1)
        run = folder / f"run-{hasher.n_bits}" if hasher.resumable else folder
        fitted = fit_in_folder(hasher, split.train, run, progress=lambda now: tell(doing, now.step, now.steps))
        folder.mkdir(parents=True, exist_ok=True)
        fitted.save(model)
    tell(doing, 1, 1)
    fitted.extractor.cache = cache
    keep_features(fitted, folder)
    return fitted


def _kept(model: Path) -> Hasher | None:
    """A fitted hasher that was kept, where it is there and sound."""
    try:
        return load_hasher(model) if model.exists() else None
    except BitscaleError:
        return None
