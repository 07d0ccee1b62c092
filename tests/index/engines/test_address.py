"""Addresses: what can be typed, what is refused, and that no password is ever in one."""

import pytest

from bitscale.errors import InputError
from bitscale.index.engines.address import is_address, parse_address


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me@host:5433/db?collection=photos",
        "postgresql://host/db?collection=photos",
        "postgresql:///db?collection=photos&host=/run/postgresql",
        "postgresql://me@[::1]:5433/db?collection=photos",
        "milvus://host:19530/photos",
    ],
)
def test_an_address_is_written_as_it_was_read(text):
    assert str(parse_address(text)) == text


def test_what_is_left_out_is_filled_in():
    assert str(parse_address("milvus://")) == "milvus://127.0.0.1:19530/photos"
    assert parse_address("postgres://host/db").name == "photos"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("postgresql://me:secret@host/db", "PGPASSWORD"),
        ("milvus://me:secret@host/photos", "MILVUS_TOKEN"),
        ("milvus://host/Bobby;DROP", "small letters"),
        ("postgresql://host/db?collection=", "small letters"),
        ("postgresql://host/db?sslmode=disable", "'sslmode' cannot be part"),
        ("milvus://host:99999/photos", "65535"),
        ("mysql://host/db", "postgresql:// or milvus://"),
        ("milvus://me:secret@[host]/photos", "IPv6"),
        ("postgresql://me:secret@[::1/db", "IPv6"),
    ],
)
def test_bad_addresses_are_refused_without_repeating_secrets(text, message):
    with pytest.raises(InputError, match=message) as error:
        parse_address(text)
    assert "secret" not in str(error.value)


def test_folders_are_no_addresses():
    assert is_address("milvus://host")
    assert is_address("postgres://host/db")
    assert not is_address("photos.bsc")
    assert not is_address("http://host")
