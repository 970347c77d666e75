"""Local accounts: a private file, which ``crossdock console account`` changes while a console reads it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from msgspec import Struct, structs
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from crossdock.console.visitors_and_roles import Person, Role
from crossdock.errors import ConfigError
from crossdock.values.safe_local_files import open_regular_file, read_rest_within_limit, replace_file_atomically

LEAST_CHARACTERS, MOST_CHARACTERS = 12, 1_000
_MAX_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,62}")


class Account(Struct, frozen=True):
    """*password* is its hash, *roles* are as in `Person`."""

    name: str
    password: str
    roles: Mapping[str, Role]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    password: str
    roles: dict[str, str]


_CONTENT = TypeAdapter(dict[str, _Stored])
_Stamp = tuple[int, int, int]


class AccountFile:
    """The accounts in a file, which is read again once it has changed. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock = threading.Lock()
        self._read: tuple[_Stamp, Mapping[str, Account]] | None = None

    def all(self) -> Mapping[str, Account]:
        """Return the accounts by name. Raises ConfigError."""
        with self._lock:
            try:
                if self._read is None or self._read[0] != _file_stamp(self.path.stat()):
                    self._read = self._load()
            except OSError as error:
                hint = f"crossdock console account add NAME --role administrator --accounts {self.path}"
                is_missing = isinstance(error, FileNotFoundError)
                message = f"the accounts cannot be read: {error.strerror}"
                raise ConfigError(
                    message, where=str(self.path), hint=hint if is_missing else None, code="file_unreadable"
                ) from None
            return self._read[1]

    def authenticate(self, name: str, password: str) -> Account | None:
        """Return the account if the password is right. Raises ConfigError or `TooManyPasswordChecksError`."""
        account = self.all().get(name)
        return (
            account if import_password_hashes_module().verify_password(password, account and account.password) else None
        )

    def person_if_password_unchanged(self, signed_in: Account) -> Person | None:
        """Return who has *signed_in*, with the present roles; None if the account or its password is another by now."""
        account = self.all().get(signed_in.name)
        if account is None or account.password != signed_in.password:
            return None
        return Person(account.name, account.roles)

    # ---- changes

    def add(self, name: str, password: str, roles: Mapping[str, Role]) -> None:
        """Add an account, and create the file if there is none. Raises ConfigError."""
        if not _NAME.fullmatch(name):
            hint = "1 to 63 lower-case letters, digits, and . _ @ + -; the first is a letter or a digit"
            raise ConfigError(f"{name!r} is no name of an account", hint=hint, code="account_invalid")
        made = Account(name, _hash_of_valid_password(password), roles)
        accounts = self.all() if self.path.exists() else {}
        if name in accounts:
            hint = "'crossdock console account role' and 'password' change it"
            raise ConfigError(
                f"there is an account {name} already", where=str(self.path), hint=hint, code="account_invalid"
            )
        self._write({**accounts, name: made})

    def remove(self, name: str) -> None:
        known = self.get(name)
        self._write({each.name: each for each in self.all().values() if each != known})

    def set_password(self, name: str, password: str) -> None:
        made = _hash_of_valid_password(password)
        self._write({**self.all(), name: structs.replace(self.get(name), password=made)})

    def set_roles(self, name: str, roles: Mapping[str, Role]) -> None:
        self._write({**self.all(), name: structs.replace(self.get(name), roles=roles)})

    def get(self, name: str) -> Account:
        """Return an account. Raises ConfigError if there is none."""
        try:
            return self.all()[name]
        except KeyError:
            hint = "'crossdock console account list' shows all"
            raise ConfigError(
                f"there is no account {name}", where=str(self.path), hint=hint, code="account_invalid"
            ) from None

    def _load(self) -> tuple[_Stamp, Mapping[str, Account]]:
        with open_regular_file(self.path) as file:
            found = os.fstat(file.fileno())
            if found.st_mode & 0o077:
                raise ConfigError(
                    "others may read the accounts",
                    where=str(self.path),
                    hint=f"chmod 600 {self.path}",
                    code="file_exposed",
                )
            content = read_rest_within_limit(file, _MAX_BYTES)
        try:
            stored = _CONTENT.validate_json(content)
            accounts = {
                name: Account(name, each.password, _roles_by_tenant(each.roles)) for name, each in stored.items()
            }
        except (ValidationError, KeyError):
            hint = "restore it, or add the accounts to a new file"
            raise ConfigError(
                "this is no file of accounts", where=str(self.path), hint=hint, code="file_unreadable"
            ) from None
        return _file_stamp(found), accounts

    def _write(self, accounts: Mapping[str, Account]) -> None:
        stored = {
            each.name: _Stored(
                password=each.password, roles={tenant: role.display_name for tenant, role in each.roles.items()}
            )
            for each in accounts.values()
        }
        try:
            replace_file_atomically(self.path, _CONTENT.dump_json(stored, indent=1) + b"\n")
        except OSError as error:
            raise ConfigError(
                f"the accounts cannot be written: {error.strerror}", where=str(self.path), code="file_unwritable"
            ) from error


def _roles_by_tenant(stored: Mapping[str, str]) -> Mapping[str, Role]:
    return {tenant: Role[role.upper()] for tenant, role in stored.items()}


def _hash_of_valid_password(password: str) -> str:
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        raise ConfigError(
            f"a password has {LEAST_CHARACTERS} to {MOST_CHARACTERS:,} characters", code="account_invalid"
        )
    made: str = import_password_hashes_module().hash_password(password)
    return made


def import_password_hashes_module() -> ModuleType:
    """Return `password_hashes`. Raises ConfigError if its library is not installed."""
    if find_spec("argon2") is None:
        raise ConfigError("accounts need argon2-cffi", hint="pip install 'crossdock[console]'", code="library_missing")
    from crossdock.console.sign_in import password_hashes  # noqa: PLC0415  few consoles have accounts

    return password_hashes


def _file_stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino
