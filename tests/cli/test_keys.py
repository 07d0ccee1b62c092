"""bitscale keys: made, listed and revoked; the file keeps hashes alone. And what serve refuses to do."""

import hashlib
import json

import pytest
from PIL import Image

from tests.cli.run import inside


def test_keys_are_made_listed_and_revoked(tmp_path):
    file = tmp_path / "keys.json"
    assert "bitscale keys make NAME" in inside("keys", "list", "--keys", file).stdout
    made = inside("keys", "make", "camera", "--write", "--collection", "photos", "--keys", file, "--json")
    table = json.loads(made.stdout)
    assert table["role"] == "write"
    assert table["collections"] == ["photos"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert table["key"] not in file.read_text()
    assert hashlib.sha256(table["key"].encode()).hexdigest() in file.read_text()
    plain = inside("keys", "make", "laptop", "--keys", file).stdout.strip()
    assert plain.startswith("bitscale_")
    listed = json.loads(inside("keys", "list", "--keys", file, "--json").stdout)["keys"]
    assert [(key["name"], key["role"]) for key in listed] == [("camera", "write"), ("laptop", "read")]
    assert "laptop" in inside("keys", "list", "--keys", file).stdout
    assert inside("keys", "revoke", "laptop", "--keys", file).returncode == 0
    assert inside("keys", "revoke", "laptop", "--keys", file).returncode == 1
    assert len(json.loads(inside("keys", "list", "--keys", file, "--json").stdout)["keys"]) == 1


@pytest.mark.slow
def test_serving_where_others_can_reach_it_takes_a_key(tmp_path):
    for words in (("--host", "0.0.0.0"), ("--require-keys",)):
        refused = inside("serve", tmp_path / "c.bsc", *words, "--keys", tmp_path / "none.json")
        assert refused.returncode == 1
        assert "bitscale keys make" in refused.stderr


def test_a_photograph_is_no_file_of_keys(tmp_path):
    """Neither is it written over, nor is anybody told to change its rights."""
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (9, 7), "red").save(photo)
    before = photo.read_bytes()
    for words in (("make", "laptop"), ("list",), ("revoke", "laptop")):
        done = inside("keys", *words, "--keys", photo)
        assert done.returncode == 1
        assert "is no file of keys" in done.stderr
    assert photo.read_bytes() == before
    assert list(tmp_path.iterdir()) == [photo]
