"""Any folder of images as a dataset: labels are its sub-folders or come from a CSV file, several allowed."""

from __future__ import annotations

import csv
import os
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from bitscale.data.image_files import FileImages
from bitscale.data.labelled import Labelled
from bitscale.data.origin import Origin, content_of, whole
from bitscale.data.split import SEED, Split, check_protocol, check_seed, check_share, draw_share, others, split_parts
from bitscale.errors import DataError
from bitscale.pictures.decode import SUFFIXES
from bitscale.pictures.listing import list_pictures

PROTOCOLS = ("P0", "P0-db")


def load_folder(
    folder: str | Path,
    protocol: str = "P0",
    *,
    labels: str | Path | None = None,
    separator: str = ";",
    query_share: float = 0.1,
    seed: int = SEED,
) -> Split:
    """A folder of images under P0 or P0-db; of every class `query_share` are drawn as queries, two at least.

    Without `labels` an image's label is the first folder on its way (`cats/tabby/1.jpg` is a "cats").
    `labels` names a CSV file with the header `file,labels`: paths below the folder, and labels divided by
    `separator`; where any image has several, or none, the dataset is multi-label. A lone query of a class would find
    nothing relevant under P0, hence two; a class keeps one image to train on, so a single one gives no query.
    """
    check_protocol(protocol, PROTOCOLS, str(folder))
    check_seed(seed, "the seed of a split")
    check_share(query_share)
    pool = read_folder(folder, labels=labels, separator=separator)
    query = draw_share(pool, query_share, np.random.default_rng(seed))
    rest = others(query, len(pool))
    name = Path(folder).resolve().name
    assert isinstance(pool.images, FileImages)
    content = content_of(pool.origin, sorted(os.fsencode(pool.images.names[row]) for row in query))
    return split_parts(name, protocol, pool.take(rest), pool.take(query), seed=seed, content=content)


def read_folder(folder: str | Path, *, labels: str | Path | None = None, separator: str = ";") -> Labelled:
    """All images of a folder with their labels, not split."""
    base = Path(folder)
    if not base.is_dir():
        raise DataError(f"{base} is not a folder. Give the folder that holds the images.")
    if labels is not None:
        return _from_csv(base, Path(labels), separator)
    names = list_images(base)
    tops = [PurePosixPath(name).parts[0] if "/" in name else "" for name in names]
    if "" in tops:
        raise DataError(
            f"{base / names[tops.index('')]} lies in no sub-folder, so it has no label. "
            "Put every image into the sub-folder of its class, or give labels= a CSV file."
        )
    classes = sorted(set(tops))
    index = {name: i for i, name in enumerate(classes)}
    labels_of = np.array([index[top] for top in tops], np.int64)
    return Labelled(FileImages(base, names), labels_of, tuple(classes), _origin(base, names))


def has_folders(base: Path) -> bool:
    """Whether every image lies in a sub-folder, which is then its label."""
    return all("/" in name for name in list_images(base))


def unlabelled_folder(base: Path) -> Labelled:
    """All images of a folder, of one class, "unlabelled": for methods that look at no labels."""
    names = list_images(base)
    labels = np.zeros(len(names), np.int64)
    return Labelled(FileImages(base, names), labels, ("unlabelled",), _origin(base, names))


def _origin(base: Path, names: list[str]) -> Origin:
    """Told from other folders by the names and sizes of its images."""
    sizes = (f"{name}\0{_size(base / name)}" for name in sorted(names))
    return whole(base.resolve().name, (os.fsencode(said) for said in sizes))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # told when it is read
        return -1


def list_images(base: Path) -> list[str]:
    """The image files below a folder, in order of their path; links to folders are not followed."""
    names = [Path(file.path).relative_to(base).as_posix() for file in list_pictures(str(base)).files]
    if not names:
        raise DataError(f"no image found below {base}. Known endings: {', '.join(sorted(SUFFIXES))}.")
    return sorted(names)


def _from_csv(base: Path, table: Path, separator: str) -> Labelled:
    names, labels_of_each = _read_csv(base, table, separator)
    classes = sorted({label for own in labels_of_each for label in own})
    if not classes:
        raise DataError(f"{table} gives no label to any image. Fill its second column.")
    index = {name: i for i, name in enumerate(classes)}
    labels: NDArray[np.int64] | NDArray[np.bool_]
    if all(len(own) == 1 for own in labels_of_each):
        labels = np.array([index[own[0]] for own in labels_of_each], np.int64)
    else:
        labels = np.zeros((len(labels_of_each), len(classes)), np.bool_)
        for row, own in enumerate(labels_of_each):
            labels[row, [index[label] for label in own]] = True
    return Labelled(FileImages(base, names), labels, tuple(classes), _origin(base, names))


def _read_csv(base: Path, table: Path, separator: str) -> tuple[list[str], list[list[str]]]:
    names: list[str] = []
    labels_of_each: list[list[str]] = []
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [cell.strip().lower() for cell in next(rows, [])]
            if header[:2] not in (["file", "labels"], ["file", "label"]):
                raise DataError(f"{table} must begin with the line `file,labels`. Got {','.join(header)!r}.")
            for row in rows:
                if row:
                    names.append(inside(base, row[0].strip(), f"{table}, line {rows.line_num}"))
                    labels_of_each.append([part.strip() for part in ",".join(row[1:]).split(separator) if part.strip()])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{table} cannot be read as a CSV file in UTF-8 ({error}).") from error
    if not names:
        raise DataError(f"{table} lists no image.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{table} lists {twice} twice. Give all labels of an image in one line.")
    return names, labels_of_each


def inside(base: Path, name: str, where: str) -> str:
    """The path of a file below a folder, as a line of a table names it; `where` tells which line."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not name or path.is_absolute() or ".." in path.parts:
        raise DataError(f"{where}: {name!r} is not a path below {base}.")
    if not os.path.isfile(base / path):  # which takes names of any length
        raise DataError(f"{where}: {base / path} does not exist.")
    return str(path)
