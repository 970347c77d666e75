"""A config that another program gives as a mapping is read by the rules of a file, with the path of each mistake."""

from __future__ import annotations

import enum
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from crossdock.errors import ConfigError
from crossdock.values.config_file import read_values_from_mapping
from crossdock.values.yaml_reader import dump_config_as_yaml, parse_yaml_mapping


class Mode(enum.StrEnum):
    SNAPSHOT = "snapshot"


def test_values_are_those_of_a_file_that_says_the_same() -> None:
    """Any mapping and list, texts of subclasses, paths, exact numbers, and variables of the environment."""
    given: dict[Any, Any] = {
        "a": MappingProxyType({"list": ("x", 1, [True, None])}),
        "path": Path("/data"), "share": 0.1, "exact": Decimal("1.50"),
        "day": date(2026, 1, 2), "name": "${NAME}", "dollar": "$${NAME}", 7: "number",
    }  # fmt: skip
    read = read_values_from_mapping(given, "config", {"NAME": "acme"}).data
    plain = given | {"a": {"list": ["x", 1, [True, None]]}, "path": "/data"}
    same = parse_yaml_mapping(dump_config_as_yaml(plain), "config", {"NAME": "acme"}).data
    assert read == same
    assert type(read["share"]) is Decimal
    assert type(read_values_from_mapping({"mode": Mode.SNAPSHOT}, "config", {}).data["mode"]) is str


LOOP: dict[str, Any] = {}
LOOP["again"] = LOOP


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", "config: a.b.1: has a value of type bytes"),
        ({"x"}, "config: a.b.1: has a value of type set"),
        (float("nan"), "config: a.b.1: a number must be finite digits"),
        (10**5000, "config: a.b.1: a whole number has at most 18 digits"),
        ("x\0", "config: a.b.1: contains a NUL"),
        ("${NOT_SET}", "config: a.b.1: "),
        ({None: 1}, "config: a.b.1: a key must be text"),
        ({1: "x", "1": "y"}, "config: a.b.1: the key '1' is repeated"),
        ({"x" * 201: 1}, "config: a.b.1: a key has at most 200 characters"),
        (LOOP, "config: a.b.1: is nested deeper than 50 levels"),
        (["x"] * 100_001, "config: holds more than 100,000 keys and values"),
    ],
    ids=["bytes", "set", "nan", "digits", "nul", "unset", "key", "repeated", "long key", "loop", "many"],
)
def test_a_mistake_is_told_with_the_path_of_its_key(value: Any, message: str) -> None:
    """There is no line that people could look at."""
    with pytest.raises(ConfigError) as refused:
        read_values_from_mapping({"a": {"b": ["fine", value]}}, "config", {})
    assert str(refused.value).startswith(message)
