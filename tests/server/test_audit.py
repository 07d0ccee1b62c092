"""The audit log: a line for each request, without keys and pictures; a file of somebody else's is left alone."""

import json

import pytest

from bitscale.errors import FileError
from bitscale.server.audit import Audit
from bitscale.server.keys import KeyFile


def test_a_line_for_each_request(serve, coded, tmp_path):
    secret, key = KeyFile(tmp_path / "keys.json").make("reader", "read")
    client = serve(coded, require_keys=True, audit=tmp_path / "audit.log")
    client.get("/v1/collections/coded?secret=1", headers={"Authorization": f"Bearer {secret}"})
    client.delete("/v1/collections/coded/items/3", headers={"Authorization": f"Bearer {secret}"})
    client.get("/metrics")
    text = (tmp_path / "audit.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["who"], line["status"]) for line in lines] == [(key.id, 200), (key.id, 403), ("nobody", 401)]
    assert lines[0]["path"] == "/v1/collections/coded"
    assert secret not in text
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    Audit(tmp_path / "audit.log").close()


def test_a_file_of_somebody_elses_is_left_alone(tmp_path):
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(FileError, match="no audit log"):
        Audit(tmp_path / "diary.txt")
    assert (tmp_path / "diary.txt").read_text() == "dear diary"
