import contextlib
import io
import subprocess
import sys
from types import SimpleNamespace


def bitscale(*words, **settings):
    """Run the command line as a process."""
    return subprocess.run(
        [sys.executable, "-c", "from bitscale.cli import main; main()", *map(str, words)],
        capture_output=True, text=True, check=False, **settings,
    )  # fmt: skip


def inside(*words, cwd="."):
    """Run the command line in this process: the same, without the time to start Python."""
    from bitscale.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(word) for word in words])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
