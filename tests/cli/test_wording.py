"""What an error says on the command line can be typed there: options, not arguments of Python; commands that run."""

import ast
import errno
import os
import re
import subprocess
from pathlib import Path

import pytest

import bitscale as bs
from bitscale.cli.output import command, program
from bitscale.cli.wording import OPTIONS, SETTINGS, as_typed, runnable
from bitscale.errors import cannot_read
from tests.cli.run import inside
from tests.cli.test_destinations import parameters

SOURCE = Path(bs.__file__).parent
# Keyword arguments of calls that no verb makes, or that a message shows as an example of a condition, a
# setting or a collection's name; what a model file holds.
PYTHON_ONLY = {"anchors", "axis", "balls", "camera", "hasher_seed", "ids", "iterations", "keep", "label", "partial",
               "photos", "read_only", "sort", "split_seed", "weights", "year"}  # fmt: skip


def texts():
    """Every text in a raise statement of the package, with its path."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                parts = [
                    c.value for c in ast.walk(node.exc) if isinstance(c, ast.Constant) and isinstance(c.value, str)
                ]
                yield path, "".join(parts)


@pytest.mark.slow
def test_no_error_shows_an_argument_of_python():
    for path, text in texts():
        left = set(re.findall(r"(?<![\w-])([a-z_]+)=(?!=)", re.sub(r"--(set|meta|where) \S+", "", as_typed(text))))
        assert left <= PYTHON_ONLY, (path, text, left)


@pytest.mark.slow
def test_no_error_calls_an_option_by_its_name_in_python():
    names = {name for _, name in parameters(".*") if "_" in name} | {"n_bits"}
    for path, text in texts():
        left = names & set(re.findall(r"(?<![\w/.-])[a-z_]+(?![\w/(])", as_typed(text)))
        assert left <= PYTHON_ONLY, (path, text, left)


def test_every_option_it_speaks_of_exists():
    known = "".join(inside(verb, "--help").stdout for verb in ("index", "reindex", "train", "evaluate", "search"))
    for option in OPTIONS.values():
        assert option in known
    from bitscale.deep.settings import DeepSettings

    assert set(DeepSettings.__dataclass_fields__) >= SETTINGS


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("say accept_missing=True (--accept-missing).", "say --accept-missing."),
        ("use validation_by=images. Got k=20000.", "use --set validation_by=images. Got -k 20000."),
        ("choose another root= (--root).", "choose another --root."),
        ("give labels= a .npy", "give --labels a .npy"),
        ('as in features="pixels@32", or', "as in --features pixels@32, or"),
        ('network="x" is fine-tuned', "--set network=x is fine-tuned"),
        ("Got n_bits=12; ask", "Got --bits 12; ask"),
        ("n_bits must be a whole number. Got 5000.", "--bits must be a whole number. Got 5000."),
        (
            "no setting 'x'. Its settings: network='a', flip=False.",
            "no setting 'x'. Its settings: network='a', flip=False.",
        ),
        ("n_bits must be at least 1.", "--bits must be at least 1."),
        ("my/n_bits and n_bits.png are names", "my/n_bits and n_bits.png are names"),
        ("run=1/labels=2.jpg is not there", "run=1/labels=2.jpg is not there"),  # the name of a file stays
    ],
)
def test_arguments_become_options(said, typed):
    assert as_typed(said) == typed


def test_settings_are_listed_by_their_names():
    with pytest.raises(bs.errors.InputError) as error:
        bs.make_hasher("nested", n_bits=8, anchors=1)
    said = as_typed(str(error.value))
    assert "network (paper-net)" in said
    assert not re.search("--|=|None", said)


def test_commands_can_be_pasted():
    assert runnable("run bitscale datasets fetch x", ".venv/bin/bitscale") == "run .venv/bin/bitscale datasets fetch x"
    assert runnable("bitscale writes; a/bitscale index", "P") == "bitscale writes; a/bitscale index"
    said = runnable("To get them: pip install --no-deps x==1", "P", ".venv/bin/python -m pip")
    assert said == "To get them: .venv/bin/python -m pip install --no-deps x==1"


def test_commands_with_names_that_are_no_text_can_be_pasted():
    name = os.fsdecode(b"caf\xe9 'x'.bsc")
    line = command("info", name)
    assert line.isprintable()
    words = ["bash", "-c", f"bitscale() {{ printf '%s' \"$2\"; }}; {line.replace(program(), 'bitscale', 1)}"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == os.fsencode(name)


def test_an_error_is_never_longer_than_one_can_read(tmp_path):
    (tmp_path / "b.csv").write_text("path\n" + "x" * 100_000)
    done = inside("search", tmp_path, "--batch", tmp_path / "b.csv")
    assert done.returncode == 1
    assert "line 2: a path has at most 4,096 bytes" in done.stderr
    done = inside("info", "y" * 100_000)
    assert done.returncode == 1
    assert len(done.stderr) < 7_000
    assert "more characters" in done.stderr


def test_too_many_open_files_are_not_blamed_on_the_disk(tmp_path):
    told = str(cannot_read(tmp_path / "items.db", OSError(errno.EMFILE, "Too many open files")))
    assert "ulimit -n" in told
    assert "disk" not in told


def test_a_mistyped_name_is_not_called_moved(tmp_path):
    (tmp_path / "p").mkdir()
    from PIL import Image

    Image.new("L", (28, 28)).save(tmp_path / "p" / "a.png")
    assert inside("index", tmp_path / "p", "--model", "fashion-mnist").returncode == 0
    done = inside("search", tmp_path / "p", tmp_path / "cta.png")
    assert "Is the path right" in done.stderr


def test_a_mistyped_verb():
    done = inside("verfy")
    assert "Did you mean 'verify'? See: bitscale --help" in done.stderr
    assert done.returncode == 2


def test_several_folders_are_announced(tmp_path):
    from PIL import Image

    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("L", (28, 28), 90).save(tmp_path / name / "1.png")
    done = inside("index", tmp_path / "a", tmp_path / "b", "--model", "fashion-mnist")
    assert "2 folders go into one collection" in done.stdout
