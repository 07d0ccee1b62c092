"""Engines that are down, locked, of another age or gone: one error that names the address and the cure."""

import socket

import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import EngineError, ModelMismatch, NotInEngine
from bitscale.index.engines import connect
from bitscale.index.engines.forms import Facts
from tests import servers

CODES = bs.Codes.from_packed(np.arange(4, dtype=np.uint8)[:, None], np.ones(8))
pytestmark = pytest.mark.slow


@pytest.fixture
def nobody():
    """A port on which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("form", ["postgresql://me@127.0.0.1:{}/db?collection=photos", "milvus://127.0.0.1:{}/photos"])
def test_a_server_that_is_down(form, nobody):
    address = form.format(nobody)
    with pytest.raises(EngineError, match="Is the server running") as error:
        connect.open_index(address)
    assert address in str(error.value)
    assert str(error.value).count("Is the server running") == 1


@pytest.mark.parametrize("engine", ["postgres", "pgvector"])
def test_a_wrong_password_and_a_wrong_database(engine, monkeypatch):
    address = servers.address(engine, "nobody")
    with pytest.raises(EngineError, match="Create the database first"):
        connect.open_index(address.replace("/postgres?", "/elsewhere?"))
    monkeypatch.setenv("PGPASSWORD", "not the one")
    with pytest.raises(EngineError, match="Set PGPASSWORD") as error:
        connect.open_index(address)
    assert "not the one" not in str(error.value)


def test_a_wrong_password_of_milvus(monkeypatch):
    address = servers.address("milvus", "nobody")
    for token in ("root:not-the-one", ""):
        monkeypatch.setenv("MILVUS_TOKEN", token)
        with pytest.raises(EngineError, match="Set MILVUS_TOKEN") as error:
            connect.open_index(address)
        assert address in str(error.value)
        assert "not-the-one" not in str(error.value)


@pytest.mark.parametrize("engine", servers.ENGINES)
def test_codes_of_another_length_or_model(engine):
    codes = bs.Codes(CODES.packed, CODES.bit_weights, "one")
    with connect.create(servers.address(engine, "length"), Facts.of(codes)) as index:
        try:
            index.add(codes)
            longer = bs.Codes.from_packed(np.zeros((1, 2), np.uint8), np.ones(16))
            for use in (lambda: index.add(longer), lambda: index.search(longer, 1)):
                with pytest.raises(ModelMismatch, match="16-bit codes"):
                    use()
            with pytest.raises(ModelMismatch, match="another"):
                index.add(bs.Codes(CODES.packed, CODES.bit_weights, "another"))
            assert len(index) == 4
        finally:
            index.drop()


@pytest.mark.parametrize("engine", servers.ENGINES)
def test_nothing_there_and_something_there_already(engine):
    address = servers.address(engine, "twice")
    assert connect.existing(address) == []
    with pytest.raises(NotInEngine, match="holds no collection"):
        connect.open_index(address)
    with connect.create(address, Facts.of(CODES)) as index:
        try:
            with pytest.raises(EngineError, match="holds a collection already"):
                connect.create(address, Facts.of(CODES))
            with connect.open_index(address) as other:
                index.add(CODES)
                assert other.search(CODES, 1).distances.tolist() == [[0]] * 4
                assert other.bit_weights.tolist() == [1] * 8
        finally:
            index.drop()


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("time.sleep", self.pass_)

    def pass_(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("said", "tries"),
    [
        ([("collection not loaded", 0), ("Deadline Exceeded", 30)], 3),  # comes back, and is slow at first
        ([("Deadline Exceeded", 30)], 2),
        ([("Deadline Exceeded", 30)] * 9, 3),  # a minute and a half, and no more
        ([("server unavailable", 10), ("collection not loaded", 0), ("server unavailable", 30)], 4),
        ([("server unavailable", 31)], 1),
        ([("wrong password", 0)], 1),
    ],
)
def test_milvus_is_asked_again_while_it_may_get_well(said, tries, monkeypatch):
    from pymilvus.exceptions import MilvusException

    from bitscale.index.engines.milvus_server import again

    clock, asked = Clock(monkeypatch), []

    def ask():
        asked.append(clock.now)
        if len(asked) <= len(said):
            text, seconds = said[len(asked) - 1]
            clock.pass_(seconds)
            raise MilvusException(1, text)
        return "well"

    if tries > len(said):
        assert again(ask) == "well"
    else:
        with pytest.raises(MilvusException, match=said[tries - 1][0]):
            again(ask)
    assert len(asked) == tries


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_connection_that_was_cut_is_made_again(engine):
    with connect.create(servers.address(engine, "cut"), Facts.of(CODES)) as index:
        index.add(CODES)
        killer = connect.open_index(servers.address(engine, "cut"))
        killer._one("SELECT pg_terminate_backend(%s)", (index._one("SELECT pg_backend_pid()"),))
        with pytest.raises(EngineError, match="run the same command again"):
            index.search(CODES[:1], 1)
        assert index.search(CODES[:1], 1).ids.tolist() == [[0]]
        killer.close()
        index.drop()
