"""Metrics as Prometheus reads them: its text exposition format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name.

    Attributes:
        name: In base units, which it names; a counter's ends in ``_total``.
        about: One line without a backslash.
        samples: No two have the same labels.
    """

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> bytes:
    return "".join(line for family in families for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.about}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for sample in family.samples:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
        yield f"{family.name}{{{labels}}} {sample.value}\n" if labels else f"{family.name} {sample.value}\n"


def _escaped(value: str) -> str:
    whole = value.encode("utf-8", "backslashreplace").decode()  # half a character is in no UTF-8
    return whole.translate(_ESCAPES)
