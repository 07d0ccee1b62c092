import pytest

from bitscale.atomic import write_whole


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x"
    write_whole(path, lambda file: file.write(b"one"))

    def fails(file):
        file.write(b"tw")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(path, fails)
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
    for name in ("a" * 255, "\U0001f4f7" * 63):
        write_whole(tmp_path / name, lambda file: file.write(b"one"))
        assert (tmp_path / name).read_bytes() == b"one"
