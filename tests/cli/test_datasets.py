import json

from tests.cli.run import inside as bitscale


def test_the_list_says_what_is_missing_and_where_it_was_looked_for(tmp_path):
    out = bitscale("datasets", "--root", tmp_path, "--json")
    found = {row["name"]: row for row in json.loads(out.stdout)}
    assert out.stderr == ""
    assert found["sample"]["present"]
    assert not found["mnist"]["present"]
    assert found["mnist"]["missing"]
    assert found["mnist"]["looked_in"] == str(tmp_path / "mnist")
    assert found["mnist"]["licence"]
    text = bitscale("datasets", "--root", tmp_path).stdout
    for said in (*found, "licence: MIT", "datasets fetch cifar10", "comes with bitscale"):
        assert said in text


def test_fetch_leaves_alone_what_is_here(tmp_path):
    out = bitscale("datasets", "fetch", "sample", "--root", tmp_path, "--json")
    assert json.loads(out.stdout)["downloaded_bytes"] == 0
    assert "nothing to fetch" in bitscale("datasets", "--root", tmp_path, "fetch", "sample").stdout


def test_what_cannot_be_fetched_says_how_to_get_it(tmp_path):
    for name, said in (("nus-wide", "ask its owners"), ("mnits", "did you mean 'mnist'")):
        out = bitscale("datasets", "fetch", name, "--root", tmp_path)
        assert (out.returncode, out.stdout, out.stderr.count("\n")) == (1, "", 1)
        assert said in out.stderr
    assert bitscale("datasets", "fetch").returncode == 2
