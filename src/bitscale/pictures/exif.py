"""What a camera wrote into a picture: when, with what and how it was taken; where only if that is asked for.

    taken      2024-05-03T14:02:11, in the camera's own time
    camera     its maker and model in one text; lens
    iso, aperture, exposure (seconds), focal (millimetres)
    latitude, longitude   only with `places`

Texts are cut at 200 characters, numbers that make no sense are left out, and a damaged block is as good as none.
Runs in workers, and needs nothing but Pillow's reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

LONGEST = 200  # characters of a text
FIELDS = ("taken", "camera", "lens", "iso", "aperture", "exposure", "focal", "latitude", "longitude")
_MORE, _PLACE = 0x8769, 0x8825  # blocks within the first
_MAKER, _MODEL, _CHANGED = 0x010F, 0x0110, 0x0132
_TAKEN, _DIGITIZED, _LENS = 0x9003, 0x9004, 0xA434
_NUMBERS = {"iso": 0x8827, "aperture": 0x829D, "exposure": 0x829A, "focal": 0x920A}
_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)")


def read_exif(picture: Image.Image, places: bool = False) -> dict[str, Any]:
    """The fields a picture has; none where its block cannot be read."""
    try:
        block = picture.getexif()
        more = block.get_ifd(_MORE)
        where = block.get_ifd(_PLACE) if places else {}
    except Exception:  # of any kind, on damaged blocks
        return {}
    dates = (_date(one) for one in (more.get(_TAKEN), more.get(_DIGITIZED), block.get(_CHANGED)))
    tags: dict[str, Any] = {"taken": next(filter(None, dates), None)}
    tags["camera"] = _camera(_text(block.get(_MAKER)), _text(block.get(_MODEL)))
    tags["lens"] = _text(more.get(_LENS))
    tags |= {name: _number(more.get(tag)) for name, tag in _NUMBERS.items()}
    if where:
        tags["latitude"] = _degrees(where.get(2), where.get(1), "S", 90)
        tags["longitude"] = _degrees(where.get(4), where.get(3), "W", 180)
    return {name: value for name, value in tags.items() if value not in (None, "")}


def _text(value: Any) -> str:
    """A text without what cannot be seen in it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in value[: 4 * LONGEST]).split())[:LONGEST]


def _camera(maker: str, model: str) -> str:
    """Maker and model; many models name their maker already."""
    named = maker and model.lower().startswith(maker.split()[0].lower())
    return model if named else f"{maker} {model}".strip()[:LONGEST]


def _date(value: Any) -> str | None:
    """A date as ISO has it; None for what no calendar has, as cameras without a clock write it."""
    match = _DATE.match(_text(value))
    if not match:
        return None
    year, month, day, hour, minute, second = match.groups()
    sound = int(year) > 0 and 1 <= int(month) <= 12 and 1 <= int(day) <= 31
    sound = sound and int(hour) < 24 and int(minute) < 60 and int(second) <= 60
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}" if sound else None


def _number(value: Any) -> float | int | None:
    """A finite number above 0, of the first where there are several."""
    if isinstance(value, tuple) and value:
        value = value[0]
    try:
        number = float(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    if not math.isfinite(number) or not 0 < number < 1e9:
        return None
    return int(number) if number == int(number) else float(f"{number:.6g}")


def _degrees(parts: Any, side: Any, negative: str, most: float) -> float | None:
    """Degrees, minutes and seconds as one number."""
    try:
        degrees, minutes, seconds = (float(part) for part in parts)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    value = degrees + minutes / 60 + seconds / 3600
    if not math.isfinite(value) or not 0 <= value <= most:
        return None
    return round(-value if _text(side).upper().startswith(negative) else value, 6)


def checked_exif(told: Any) -> Mapping[str, Any]:
    """What a worker told, as far as it is what this file gives."""
    if not isinstance(told, Mapping):
        return {}
    kinds = (str, int, float)
    return {name: told[name] for name in FIELDS if isinstance(told.get(name), kinds)}
