import contextlib
import io
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import patch


def bitscale(*words, **settings):
    """Run the command line as a process."""
    return subprocess.run(
        [sys.executable, "-c", "from bitscale.cli import main; main()", *map(str, words)],
        capture_output=True, text=True, check=False, **settings,
    )  # fmt: skip


def inside(*words):
    """Run the command line in this process: the same, without the time to start Python."""
    from bitscale.cli import run
    from bitscale.cli.output import wants_json

    argv = ["bitscale", *map(str, words)]
    out, err = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(wants_json(argv[1:]))
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
