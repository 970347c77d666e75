"""Masks personal data in the messages of answers, before they are stored, shown or logged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from crossdock.reading.transport.error_answer_parsing import MAX_POINTER, SHOWN
from crossdock.state import Intent, Scope
from crossdock.writing.delivery.operations_and_intents import payload_after
from crossdock.writing.targets.answer_outcomes import Outcome

_TOKEN = re.compile(r"[\w@.+-]{3,}")


class PersonalDataMasks:
    """The personal members: those of resource models, and those that a config marks, by the name of the stream."""

    def __init__(
        self,
        marked: Mapping[str, frozenset[str]] = {},
        resources: Mapping[tuple[str, str], frozenset[str]] = {},
    ) -> None:
        self._marked, self._resources = marked, resources

    def personal_members(self, stream: str, scope: Scope) -> frozenset[str]:
        of_resource = self._resources.get((scope.target, scope.resource), frozenset())
        return of_resource | self._marked.get(stream, frozenset())

    def masked_outcome(self, intents: Sequence[Intent], outcome: Outcome) -> Outcome:
        """Shorten the message of *outcome* to `SHOWN` characters, with personal values and parts of them masked."""
        if not outcome.message and not outcome.pointer:
            return outcome
        values = [
            payload.get(name)
            for intent in intents
            for name in self.personal_members(intent.identity.stream, intent.scope)
            for payload in (intent.before or {}, payload_after(intent))
        ]
        texts = [text.casefold() for text in _texts_in_value(values)]
        pointer = outcome.pointer and _masked_message(outcome.pointer, texts)[:MAX_POINTER]
        return replace(outcome, message=_masked_message(outcome.message, texts)[:SHOWN], pointer=pointer)


def _masked_message(message: str, texts: list[str]) -> str:
    words = {word for text in texts for word in _TOKEN.findall(text)}

    def mask(found: re.Match[str]) -> str:
        token = found[0].casefold()
        is_personal = any(token in text for text in texts) or any(word in token for word in words)
        return "(personal)" if is_personal else found[0]

    return _TOKEN.sub(mask, message) if texts else message


def _texts_in_value(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in_value(inner)
