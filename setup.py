"""The one thing pyproject.toml cannot say: the search kernel is compiled where a compiler exists.

`optional=True` lets the install succeed without one; bitscale then runs on its NumPy kernel and
says so once. BITSCALE_SANITIZE=1 builds the kernel for AddressSanitizer (see `make torture`).
"""

import os
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src/bitscale/native/src")
sanitize = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"] if os.environ.get("BITSCALE_SANITIZE") else []

setup(
    ext_modules=[
        Extension(
            "bitscale.native._kernel",
            sources=[str(path) for path in sorted(SOURCES.glob("*.cpp"))],
            depends=[str(path) for path in sorted(SOURCES.glob("*.hpp"))],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", *sanitize],
            extra_link_args=["-pthread", *sanitize],
            language="c++",
            optional=True,
        )
    ]
)
