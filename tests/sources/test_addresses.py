"""URLs of databases are read without being shown: no password is in any text that we make of them."""

import pickle

import pytest

from deciban import UsageError
from deciban.sources.addresses import Address, find_passwords, is_address, mask_passwords, passwords_in

SECRET = "s3cr%26t%20pass"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://ann:{SECRET}@db.example.com:5432/shop", "postgresql://ann@db.example.com:5432/shop"),
        (f"postgres://ann:{SECRET}@[::1]:5432/shop?sslmode=require", "postgresql://ann@[::1]:5432/shop"),
        (f"postgresql://a,b:5433/shop?user=ann&password={SECRET}", "postgresql://a,b:5433/shop"),
        (f"postgresql:///shop?host=/run/postgresql&sslpassword={SECRET}", "postgresql:///shop"),
        ("postgresql://", "postgresql://"),
        ("postgresql://ann@h:1/a?application_name=x@y", "postgresql://ann@h:1/a"),
    ],
)
def test_what_is_shown_of_a_url_has_neither_password_nor_options(url: str, shown: str) -> None:
    address = Address.of(url)
    assert (address.shown, address.url) == (shown, url)
    assert is_address(url)
    assert "s3cr" not in repr(address)
    if SECRET in url:
        assert "s3cr" not in address.hide(f"the server says s3cr&t pass, {SECRET} and {url}")
    assert pickle.loads(pickle.dumps(address)) == address


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sec/ret@host/db",
        "postgresql://ann:sec@ret@host/db",
        "postgresql://ann:sec%zzret@host/db",
        "postgresql://ann:sec#ret@host/db",
        "postgresql://ann:secret@host:port/db",
        "postgresql://ann:12/sec@host/db",
        "postgresql://ann:12?sec@host/db",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    """A part of the password could be taken for a host or a port, and would be shown as such."""
    with pytest.raises(UsageError, match="invalid database URL; write it as postgresql://") as caught:
        Address.of(url)
    assert "sec" not in str(caught.value)
    assert "sec" not in mask_passwords(f"{url}: no such file")
    assert find_passwords(["fit", url])


def test_names_are_shown_also_where_the_password_is_the_same() -> None:
    address = Address.of("postgresql://postgres:postgres@localhost/postgres")
    assert address.hide('database "postgres" does not exist') == 'database "postgres" does not exist'


def test_only_passwords_are_taken_for_such() -> None:
    assert passwords_in("postgresql://ann@h:5432/a?application_name=x@y") == []
    assert passwords_in("postgresql://ann:x@h/a?password=y&sslpassword=z") == ["x", "y", "z"]
    assert find_passwords(["fit", "days.csv", "https://example.com/a:b@c.csv"]) == []
    text = "the file a:b@c.csv has no password, nor has https://example.com:80/d"
    assert mask_passwords(text) == text
