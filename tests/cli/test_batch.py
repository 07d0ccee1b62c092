"""What a search is asked for, from what is typed."""

import pytest

from bitscale.cli.batch import named_queries
from bitscale.cli.output import UsageError


def test_a_folder_without_pictures_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"no picture below {tmp_path}"):
        named_queries([str(tmp_path)], None)
    with pytest.raises(UsageError, match="nothing to search for"):
        named_queries([], None)
