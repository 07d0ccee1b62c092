"""How the pretrained networks are laid out, as tables: (expand, channels, repeats, stride, kernel) for each stage.

MobileNetV2: Sandler et al., CVPR 2018, table 2. EfficientNet-Lite0: EfficientNet-B0 (Tan and Le, ICML 2019, table 1)
in its Lite form. Both begin with 32 filters of 3x3 and stride 2 and end with 1,280 of 1x1.
"""

from __future__ import annotations

Stages = tuple[tuple[int, int, int, int, int], ...]

FIRST, LAST = 32, 1280  # filters

MOBILENETV2: Stages = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 32, 3, 2, 3),
    (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
)
EFFICIENTNET_LITE0: Stages = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
