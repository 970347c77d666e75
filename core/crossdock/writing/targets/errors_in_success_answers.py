"""Errors by which an answer of success says that its request failed, such as ``userErrors`` of a GraphQL mutation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crossdock.values.json_paths import find_at_pointer

_REFUSED, _TAKEN = 422, 409
_OF_GRAPHQL = "/errors"  # beside data: https://spec.graphql.org/October2021/#sec-Errors


@dataclass(frozen=True, slots=True)
class AnswerErrors:
    """One place of errors in answers of success. All but `at` are about one error there.

    Attributes:
        at: A JSON pointer to the list of errors, or to one error, such as ``/data/saved/errors``. It has none if it is
            missing, null or empty.
        code: Where an error has its code.
        statuses: The status, 400 to 599, that an error stands for, by code; see `ApiTarget.failed`.
        repeated: The code by which a second record of a name is refused; None for none.
        member: Where an error names the member that it is about: a text, or a list whose last one counts. An error with
            the code `repeated` that names another member than the external id is a refusal like others.
        otherwise: The status that any other error stands for. GraphQL's own ``/errors`` without ``data`` are always a
            refusal, since nothing was done.
    """

    at: str
    code: str = field(default="/code", kw_only=True)
    statuses: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    repeated: str | None = field(default=None, kw_only=True)
    member: str = field(default="/field", kw_only=True)
    otherwise: int = field(default=_REFUSED, kw_only=True)

    def status_of(self, body: Any, name_member: str | None) -> int | None:
        """Return the status that the errors of an answer stand for; None without one.

        Args:
            name_member: The member with the external id.
        """
        found = find_at_pointer(body, self.at)
        errors = found if isinstance(found, list) else [found] if isinstance(found, dict) and found else []
        if not errors:
            return None
        if any(self._reports_repeated_name(each, name_member) for each in errors):
            return _TAKEN
        stated = [self.statuses.get(self._code_of(each) or "") for each in errors]
        if status := next(filter(None, stated), None):
            return status
        is_undone = self.at == _OF_GRAPHQL and isinstance(body, dict) and body.get("data") is None
        return _REFUSED if is_undone else self.otherwise

    def _code_of(self, error: Any) -> str | None:
        found = find_at_pointer(error, self.code)
        return str(found) if isinstance(found, str | int) else None

    def _reports_repeated_name(self, error: Any, name_member: str | None) -> bool:
        if self.repeated is None or self._code_of(error) != self.repeated:
            return False
        named = find_at_pointer(error, self.member)
        named = named[-1] if isinstance(named, list) and named else named
        return not isinstance(named, str) or named == name_member
