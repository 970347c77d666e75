"""Which members of records a run has changed, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from crossdock.state.queries.run_details_and_deliveries import DeliveredUpdate, RunDetails
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks
from crossdock.writing.targets.payload_comparison import MemberDifference, member_differences

LOOKED_AT = 1_000  # most operations of a run that are compared
EXAMPLES = 3  # of each member
_PLACE = re.compile(r"/[0-9]+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Example:
    """The first change of a member in the record with *key*."""

    key: str
    difference: MemberDifference


@dataclass(slots=True)
class ChangedMember:
    """A member, with ``*`` for the place in a list, that *times* updates of *stream* have changed."""

    stream: str
    member: str
    times: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChangedMembers:
    """The members of the first *operations* of a run; it has no others if *are_all*."""

    members: tuple[ChangedMember, ...]
    operations: int
    are_all: bool


def count_members_changed_by_run(
    state: RunDetails, run_id: int, masks: PersonalDataMasks | None = None
) -> ChangedMembers:
    """Compare the payloads before and after each update. Personal values of examples are hidden by *masks*.

    Without *masks* there are no examples.
    """
    first = state.updates_among_first_operations(run_id, limit=LOOKED_AT)
    found: dict[tuple[str, str], ChangedMember] = {}
    for update in first.updates:
        for member, differences in _differences_by_member(update, masks).items():
            changed = found.setdefault((update.stream, member), ChangedMember(update.stream, member))
            changed.times += 1
            if masks is not None and len(changed.examples) < EXAMPLES:
                changed.examples.append(Example(update.key, differences[0]))
    ordered = sorted(found.values(), key=lambda each: (each.stream, -each.times, each.member))
    return ChangedMembers(tuple(ordered), first.number, first.are_all)


def changed_members_document(changed: ChangedMembers) -> dict[str, Any]:
    """Return *changed* as ``--json`` prints it, without values."""
    members = [{"stream": each.stream, "member": each.member, "updates": each.times} for each in changed.members]
    return {"operations": changed.operations, "are_all": changed.are_all, "members": members}


def _differences_by_member(
    update: DeliveredUpdate, masks: PersonalDataMasks | None
) -> dict[str, list[MemberDifference]]:
    personal: Iterable[str] = () if masks is None else masks.personal_members(update.stream, update.scope)
    found: dict[str, list[MemberDifference]] = {}
    for each in member_differences(update.before, update.after, frozenset(personal)):
        found.setdefault(_PLACE.sub("/*", each.pointer), []).append(each)
    return found
