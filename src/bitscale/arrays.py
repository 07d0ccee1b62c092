"""Names for the array types and callbacks that most rooms speak of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Float32 = NDArray[np.float32]
Int = NDArray[np.int64]
Pixels = NDArray[np.uint8]  # one image (H, W, C), or several (n, H, W, C)

Progress = Callable[[int, int], None]  # how many are done, of how many
