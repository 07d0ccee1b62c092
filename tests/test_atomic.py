import pytest

from bitscale.files import write_whole


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
