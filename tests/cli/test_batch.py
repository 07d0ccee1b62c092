"""What a search is asked for, from what is typed."""

import pytest

from bitscale.cli.batch import named_queries, read_batch
from bitscale.cli.output import UsageError
from bitscale.errors import DataError, InputError


def test_a_folder_without_pictures_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"no picture below {tmp_path}"):
        named_queries([str(tmp_path)], None)
    with pytest.raises(UsageError, match="nothing to search for"):
        named_queries([], None)


@pytest.mark.parametrize("name", ["q.jsonl", "q.csv"])
def test_a_path_longer_than_any_system_takes_names_the_limit(tmp_path, name):
    path = "\u00e9" * 2_500  # two bytes each
    (tmp_path / name).write_text(f'"{path}"' if name.endswith("l") else f"path\n{path}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line [12]: a path has at most 4,096 bytes"):
        read_batch(tmp_path / name)


def test_a_table_that_python_cannot_read_is_told(tmp_path):
    (tmp_path / "q.csv").write_text("path\n" + "x" * 200_000)
    with pytest.raises(DataError, match="cannot be read as CSV"):
        read_batch(tmp_path / "q.csv")
