"""Memory of a training run: peak resident size with 60,000 and with 600,000 generated images on disk.

python benchmarks/memory.py [--iterations 200] [--out results/memory.json]
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TRAIN = """
import resource, sys
import bitscale as bs
split = bs.load_dataset("mnist", root=sys.argv[1])
bs.make_hasher("drsch", n_bits=64, iterations=int(sys.argv[2])).fit(split.train)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def generate(folder: Path, n_train: int) -> None:
    """MNIST's files with random pixels."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for part, n in (("train", n_train), ("t10k", 10_000)):
        with (folder / f"{part}-images-idx3-ubyte").open("wb") as file:
            file.write(struct.pack(">IIII", 2051, n, 28, 28))
            for at in range(0, n, 10_000):
                file.write(rng.bytes(min(10_000, n - at) * 784))
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels.tobytes())


def main() -> None:
    """Train on both sizes in processes of their own, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "memory.json")
    options = parser.parse_args()
    peak = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in (60_000, 600_000):
            generate(Path(folder) / str(n) / "mnist", n)
            command = [sys.executable, "-c", TRAIN, str(Path(folder) / str(n)), str(options.iterations)]
            peak[str(n)] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024
    ratio = peak["600000"] / peak["60000"]
    found = {"iterations": options.iterations, "peak_resident_bytes": peak, "ratio": ratio, "at_most": 1.1}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
