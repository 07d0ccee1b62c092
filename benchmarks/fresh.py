"""From nothing to the first answer: a fresh environment without torch, the README's commands word for word.

    python benchmarks/fresh.py --photographs FOLDER [--most 200] [--work FOLDER] [--out results/fresh.json]

The commands are those of the README under "Search your own pictures" up to the first search, read from it; the folder
`holiday` holds the photographs, `cat.jpg` is one of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from photographs import photographs
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in")


def commands() -> list[str]:
    """What the README says, without its remarks, up to the first search."""
    text = (ROOT / "README.md").read_text()
    block = text[text.index("## Search your own pictures") :].split("```")[0]
    lines = [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("    ")]
    first = next(i for i, line in enumerate(lines) if line.startswith("bitscale search"))
    start = re.search(r"^    (python3 -m venv .*)$", text, re.M)
    assert start is not None
    return [start.group(1), *lines[: first + 1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--work", type=Path, help="where the environment is made")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "fresh.json")
    options = parser.parse_args()
    told = []
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        home = Path(folder)
        for name in SOURCE:
            if (ROOT / name).is_dir():
                left = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
                shutil.copytree(ROOT / name, home / name, ignore=left)
            elif (ROOT / name).exists():
                shutil.copy(ROOT / name, home)
        (home / "holiday").mkdir()
        paths = photographs(options.photographs)
        chosen = paths[:: max(len(paths) // options.most, 1)][: options.most]
        for i, path in enumerate(chosen):
            shutil.copy(path, home / "holiday" / f"{i:03d}{path.suffix.lower()}")
        shutil.copy(chosen[7], home / "cat.jpg")
        clean |= {"XDG_DATA_HOME": str(home / "data"), "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"}
        clean.pop("BITSCALE_DATA", None)
        clean.pop("BITSCALE_RUNS", None)
        for command in commands():
            inside = command if command.startswith("python3") else f". .venv/bin/activate && {command}"
            start = time.perf_counter()
            done = subprocess.run(["bash", "-c", inside], cwd=home, env=clean, capture_output=True, text=True)
            told.append({"command": command, "seconds": round(time.perf_counter() - start, 1)})
            print(told[-1], flush=True)
            if done.returncode:
                raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
        answer = done.stdout.splitlines()
        has = subprocess.run([home / ".venv" / "bin" / "python", "-c", "import torch"], capture_output=True, env=clean)
    found = {
        "machine": machine(),
        "photographs": len(chosen),
        "torch is there": has.returncode == 0,
        "commands": told,
        "seconds": round(sum(row["seconds"] for row in told), 1),
        "at most": 180,
        "answer": [line[:100].replace(folder, "") for line in answer[:4]],
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
