"""Masks personal values of a record in the messages of a target, where answers come in (law 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from crossdock.reading.transport.problem_answers import MAX_POINTER, SHOWN
from crossdock.state import Intent, Scope
from crossdock.writing.delivery.operations import payload_after
from crossdock.writing.targets.outcomes import Outcome

_TOKEN = re.compile(r"[\w@.+-]{3,}")


class Masks:
    """The personal members: those of the resource models and those that a config marks.

    Args:
        marked: Members by the name of the stream.
        resources: Members by target and resource; also of streams that the config no longer has.
    """

    def __init__(
        self,
        marked: Mapping[str, frozenset[str]] = {},
        resources: Mapping[tuple[str, str], frozenset[str]] = {},
    ) -> None:
        self._marked, self._resources = marked, resources

    def of(self, stream: str, scope: Scope) -> frozenset[str]:
        of_resource = self._resources.get((scope.target, scope.resource), frozenset())
        return of_resource | self._marked.get(stream, frozenset())

    def applied(self, intent: Intent, outcome: Outcome) -> Outcome:
        """Shorten the message of *outcome* to `SHOWN` characters, with personal values and parts of them masked."""
        if not outcome.message and not outcome.pointer:
            return outcome
        members, payloads = (
            self.of(intent.identity.stream, intent.scope),
            (intent.before or {}, payload_after(intent)),
        )
        texts = [text.casefold() for text in _texts([payload.get(name) for name in members for payload in payloads])]
        pointer = outcome.pointer and _masked(outcome.pointer, texts)[:MAX_POINTER]
        return replace(outcome, message=_masked(outcome.message, texts)[:SHOWN], pointer=pointer)


def _masked(message: str, texts: list[str]) -> str:
    words = {word for text in texts for word in _TOKEN.findall(text)}

    def mask(found: re.Match[str]) -> str:
        token = found[0].casefold()
        is_personal = any(token in text for text in texts) or any(word in token for word in words)
        return "(personal)" if is_personal else found[0]

    return _TOKEN.sub(mask, message) if texts else message


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
