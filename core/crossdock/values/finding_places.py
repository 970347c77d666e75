"""Places of pydantic's findings in a config. For a union, those of the nearest choice, without its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from crossdock.values.yaml_reader import Place

_MUST_BE = "must be "


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding about the value at *place*.

    Attributes:
        choices: The unions around it, outermost first: the place of each, and pydantic's name of the choice it tried.
        message: The whole message, with advice for a single type.
        short: The message without that, for a list of types.
        of_type: Whether the value has a wrong type, so that another choice may be meant.
        absent: The place of the key that is missing, if that is what was found.
    """

    place: Place
    choices: tuple[tuple[Place, str | int], ...]
    message: str
    short: str
    of_type: bool
    absent: Place | None = None


def place_and_choices(
    start: Place, path: Sequence[str | int], key: Place, exists: Callable[[Place], bool]
) -> tuple[Place, tuple[tuple[Place, str | int], ...]]:
    """Return the place of a finding below *start*, and the choices of unions in pydantic's *path*.

    *key* has the parts after the path that may be missing in the file.
    """
    place, choices = start, []
    for number, part in enumerate(path):
        following = (*path, *key)[number + 1 : number + 2]
        inside, beside = (*place, part, *following), (*place, *following)
        if not exists((*place, part)) or (not exists(inside) and exists(beside)):
            choices.append((place, part))
        else:
            place = (*place, part)
    return (*place, *key), tuple(choices)


def findings_of_nearest_choice(findings: Iterable[PlacedFinding]) -> list[PlacedFinding]:
    """Leave out findings of choices that the value is not near to. Choices that it fails as a whole become one."""
    left = list(findings)
    for depth in range(max((len(each.choices) for each in left), default=0), 0, -1):
        groups: dict[object, list[PlacedFinding]] = {}
        for each in left:
            union = (each.choices[: depth - 1], each.choices[depth - 1][0]) if len(each.choices) == depth else each
            groups.setdefault(union, []).append(each)
        left = [each for group in groups.values() for each in (_nearest_choice(group, depth))]
    return left


def _nearest_choice(group: list[PlacedFinding], depth: int) -> list[PlacedFinding]:
    if len(group[0].choices) < depth:
        return group
    by_choice: dict[str | int, list[PlacedFinding]] = {}
    for each in group:
        outer = replace(each, choices=each.choices[:-1])
        by_choice.setdefault(each.choices[-1][1], []).append(outer)
    if len(by_choice) == 1:
        return next(iter(by_choice.values()))
    union = group[0].choices[-1][0]
    inside = [each for each in by_choice.values() if any(len(finding.place) > len(union) for finding in each)]
    if inside:
        return max(inside, key=lambda each: (max(len(finding.place) for finding in each), -len(each)))
    failed = [each for choice in by_choice.values() for each in choice]
    failed = [each for each in failed if not each.of_type] or failed
    merged = _joined_messages([each.short for each in failed])
    return [failed[0] if len(failed) == 1 else replace(failed[0], message=merged, short=merged)]


def _joined_messages(messages: list[str]) -> str:
    distinct = list(dict.fromkeys(messages))
    if len(distinct) > 1 and all(each.startswith(_MUST_BE) for each in distinct):
        *others, last = (each.removeprefix(_MUST_BE) for each in distinct)
        listed, _, last = f"{', '.join(others)} or {last}".rpartition(" or ")
        return _MUST_BE + listed.replace("' or '", "', '") + f" or {last}"
    return "; or: ".join(distinct)
