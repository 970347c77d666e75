"""A console with the accounts of two people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher, profiles
from tests.consoles import PASSWORD, ServedConsole, make_fleet, served

from crossdock.console.sign_in import password_hashes
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.console.visitors_and_roles import Role


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_hashes, "_HASHER", PasswordHasher.from_parameters(profiles.CHEAPEST))
    password_hashes._hash_of_random_password.cache_clear()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    make_fleet(tmp_path / "tenants")
    return tmp_path / "tenants"


@pytest.fixture
def accounts(tmp_path: Path) -> AccountFile:
    """Of anna, an administrator everywhere, and ben, an operator at "a" and a viewer at "b"."""
    made = AccountFile(tmp_path / "people")
    made.add("anna", PASSWORD, {"*": Role.ADMINISTRATOR})
    made.add("ben", PASSWORD, {"a": Role.OPERATOR, "b": Role.VIEWER})
    return made


@pytest.fixture
def console(fleet: Path, accounts: AccountFile) -> Iterator[ServedConsole]:
    with served(fleet, Protection(accounts=accounts.path)) as made:
        yield made


@pytest.fixture
def proxied(fleet: Path, accounts: AccountFile) -> Iterator[ServedConsole]:
    """Behind a proxy of this machine."""
    with served(fleet, Protection(accounts=accounts.path, proxies=("127.0.0.1",))) as made:
        yield made
