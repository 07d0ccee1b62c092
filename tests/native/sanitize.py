"""Build the kernel for AddressSanitizer and UBSan, and run the index tests on it: `make torture`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/index", "tests/native/test_native.py")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        for name in ("src", "tests", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
            subprocess.run(["cp", "-r", str(ROOT / name), str(tree)], check=True)
        for built in (tree / "src/bitscale/native").glob("*.so"):
            built.unlink()
        env = {**os.environ, "BITSCALE_SANITIZE": "1"}
        subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tree, env=env, check=True)
        runtime = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        standard = subprocess.run(
            ["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True
        )
        env.update(
            LD_PRELOAD=f"{runtime.stdout.strip()}:{standard.stdout.strip()}",
            ASAN_OPTIONS="detect_leaks=0:halt_on_error=1:abort_on_error=1",
            UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
            PYTHONPATH=str(tree / "src"),
            PYTHONMALLOC="malloc",
        )
        chosen = ["-k", "not compiler", "-p", "no:cacheprovider", "-q"]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *chosen, *TESTS], cwd=tree, env=env, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
