import subprocess
import sys


def bitscale(*words, **settings):
    """Run the command line as a process."""
    return subprocess.run(
        [sys.executable, "-c", "from bitscale.cli import main; main()", *map(str, words)],
        capture_output=True, text=True, check=False, **settings,
    )  # fmt: skip
