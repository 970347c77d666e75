"""What users may rely on, as facts: a subject, such as ``crossdock.run(config)``, and what is true of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.compatibility.annotations import is_wider

HERE = Path(__file__).parent
REQUIRED = "required"
LIMIT = "limit "
TYPE = "type "
LIMITS = {
    "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties",
    "maximum", "exclusiveMaximum", "maxLength", "maxItems", "pattern",
}  # fmt: skip
Fact = tuple[str, str]


def text_of(facts: Iterable[Fact]) -> str:
    """Return a line for each subject, in order."""
    lines = defaultdict[str, list[str]](list)
    for subject, fact in sorted(facts):
        lines[subject].append(fact)
    return "".join(f"{subject}: {'; '.join(found)}\n" for subject, found in lines.items())


def facts_of(text: str) -> set[Fact]:
    """Read what `text_of` wrote."""
    lines = (line.partition(": ") for line in text.splitlines())
    return {(subject, fact) for subject, _, found in lines for fact in found.split("; ")}


def newest_release(kind: str) -> set[Fact]:
    """Return the facts of the newest release whose facts are kept in this folder: ``api``, ``config`` or ``output``."""
    files = HERE.glob(f"{kind}_*.txt")
    newest = max(files, key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)])
    return facts_of(newest.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Break:
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}"


def breaks(before: Collection[Fact], after: Collection[Fact], *, kept: Collection[Fact] = ()) -> Iterator[Break]:
    """Yield what is no longer true, and what has become required of something that existed before.

    Args:
        kept: Facts that are true as well, but tell of nothing new, such as those of inherited members.
    """
    known = {subject for subject, _ in before}
    wider = {(subject, fact) for subject, fact, _ in widened(before, after)}
    for subject, fact in sorted({*before} - {*after} - {*kept} - wider):
        if fact != REQUIRED and not fact.startswith(LIMIT):
            yield Break(subject, f"no longer {fact}")
    for subject, fact in sorted({*after} - {*before}):
        if fact == REQUIRED and (subject in known or _owner(subject) in known):
            yield Break(subject, "newly required")
    limits = _limits(before)
    for (subject, what), values in sorted(_limits(after).items()):
        if subject in known and _is_narrower(what, limits.get((subject, what)), values):
            yield Break(subject, f"newly limited: {what} {', '.join(sorted(values))}")


def widened(before: Collection[Fact], after: Collection[Fact]) -> Iterator[tuple[str, str, str]]:
    """Yield each parameter that accepts more than before: its subject, and what its type was and is."""
    types = {subject: fact for subject, fact in after if fact.startswith(TYPE) and subject.endswith(")")}
    for subject, fact in sorted({*before} - {*after}):
        now = types.get(subject) if fact.startswith(TYPE) else None
        if now is not None and is_wider(fact.removeprefix(TYPE), now.removeprefix(TYPE)):
            yield subject, fact, now


def _limits(facts: Iterable[Fact]) -> dict[tuple[str, str], set[str]]:
    """Return the values of each limit by its subject and its name, such as ``integer minimum``."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for subject, fact in facts:
        if fact.startswith(LIMIT):
            kind, name, value = fact.removeprefix(LIMIT).split(" ", 2)
            found[subject, f"{kind} {name}"].add(value)
    return found


def _is_narrower(what: str, before: set[str] | None, after: set[str]) -> bool:
    if before == after:
        return False
    if before is None or what.endswith("pattern") or len(before) != 1 or len(after) != 1:
        return True
    ((old,), (new,)) = before, after
    return float(new) > float(old) if "min" in what.lower() else float(new) < float(old)


def _owner(subject: str) -> str:
    return subject.rpartition("(")[0] or subject.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Declared:
    """A break that is intended, from ``declared_breaks.toml``.

    Attributes:
        subject: The subject; what belongs to it, such as its members and parameters, is declared as well.
        version: The version that has the break.
        reason: Why users gain by it.
    """

    subject: str
    version: str
    reason: str

    def covers(self, found: Break) -> bool:
        return found.subject == self.subject or found.subject.startswith((f"{self.subject}.", f"{self.subject}("))

    def is_in(self, changelog: str) -> bool:
        """Return whether the section of the version names the subject under Removed or Changed."""
        sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
        own = [each for each in sections if each.startswith(f"[{self.version}]")]
        own = own or [each for each in sections if each.startswith("[Unreleased]")]
        parts = [part for each in own for part in re.split(r"^### ", each, flags=re.MULTILINE)]
        told = "".join(part for part in parts if part.startswith(("Removed", "Changed")))
        name = re.split(r"[.(]", self.subject.rstrip(")"))[-1]
        return re.search(rf"`[^`]*\b{re.escape(name)}\b[^`]*`", told) is not None
