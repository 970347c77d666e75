"""Who visits the console, and what they may do at each tenant."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct, field

from crossdock.values.acting_person_and_process import user_of_process


class Role(IntEnum):
    """A role may do what those below it may do."""

    VIEWER = 1  # sees everything but personal data
    OPERATOR = 2  # also sees personal data, and repairs and runs
    ADMINISTRATOR = 3  # also approves, undoes and changes settings

    @property
    def display_name(self) -> str:
        return self.name.lower()


ALL_TENANTS = "*"


class Person(Struct, frozen=True):
    """*roles* are by tenant, that of `ALL_TENANTS` for those that are not named."""

    name: str
    roles: Mapping[str, Role] = field(default_factory=dict)
    signs_in: bool = True

    def role_at_tenant(self, tenant: str) -> Role | None:
        return self.roles.get(tenant, self.roles.get(ALL_TENANTS))

    def has_role(self, role: Role, tenant: str | None) -> bool:
        """Return whether the person has *role* at *tenant*, or at any tenant if it is None."""
        roles = self.roles.values() if tenant is None else [self.role_at_tenant(tenant)]
        return any(each is not None and each >= role for each in roles)


NOBODY = Person("")
"""Who has not signed in."""


def local_user_as_administrator() -> Person:
    """Return who started the console: on loopback only users of this machine reach it."""
    return Person(user_of_process(), {ALL_TENANTS: Role.ADMINISTRATOR}, signs_in=False)
