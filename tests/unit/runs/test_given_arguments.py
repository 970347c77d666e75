"""What another program may give to `crossdock.run` and `crossdock.plan`, and what it is told of a mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import crossdock
from crossdock.errors import ConfigError
from crossdock.runs import init_plan_run_for_programs
from crossdock.runs.init_plan_run_for_programs import (
    checked_list_of_config_sources,
    checked_list_of_stream_names,
    checked_lists_of_record_keys,
    raise_if_process_was_forked,
)


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_plan_run_for_programs, "_used_by", 0)


@pytest.mark.parametrize("streams", ["wms.products", [b"wms"], [1]])
def test_streams_are_a_list_of_texts(streams: Any) -> None:
    """Each character of one text would be a name."""
    with pytest.raises(ConfigError, match="streams is a list of names") as refused:
        crossdock.run({}, streams)
    assert refused.value.code == "option_value_invalid"
    assert checked_list_of_stream_names(each for each in ("a", "b")) == ["a", "b"]


@pytest.mark.parametrize(
    "keys",
    [{"shop.orders": "1001"}, {"shop.orders": [1001]}, {"shop.orders": [None]}, {"shop.orders": [["1", 2]]},
     {"shop.orders": [""]}, {"shop.orders": None}, {1: ["1001"]}, ["shop.orders"]],
)  # fmt: skip
def test_keys_are_lists_of_texts_by_stream(keys: Any) -> None:
    """An identifier is text, and one text is not taken for several keys."""
    with pytest.raises(ConfigError) as refused:
        crossdock.run({}, keys=keys)
    assert refused.value.code == "option_value_invalid"
    assert checked_lists_of_record_keys({"a": ("1",), "b": []}) == {"a": ["1"], "b": []}


@pytest.mark.parametrize("config", [None, 3, b"shop.yaml", [None], [{}, 3]])
def test_a_config_of_another_type_is_a_type_error(config: Any) -> None:
    """It says which types there are."""
    with pytest.raises(TypeError, match="config is a path, a mapping or a list of these"):
        crossdock.check(config)


def test_a_config_is_one_or_several() -> None:
    """Paths of any kind, mappings of any kind, and any list of them."""
    several: Iterator[Any] = iter(["a.yaml", {"state": "x"}])
    assert checked_list_of_config_sources(several) == [Path("a.yaml"), {"state": "x"}]
    assert checked_list_of_config_sources(PurePosixPath("a.yaml")) == [Path("a.yaml")]


def test_a_mistake_of_an_argument_is_told_before_the_config_is_read() -> None:
    """A priority, an event and a listener."""
    wrong: Any = True
    with pytest.raises(TypeError, match="progress lacks the methods begin, advance"):
        crossdock.plan({}, progress=wrong)
    with pytest.raises(TypeError, match=r"interrupt is a threading\.Event, not bool"):
        init_plan_run_for_programs.checked_interrupt_event(wrong)
    with pytest.raises(ConfigError, match="there is no priority True"):
        init_plan_run_for_programs.checked_priority(wrong)


def test_a_process_that_was_forked_after_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for threads that do not exist in it."""
    raise_if_process_was_forked()
    raise_if_process_was_forked()
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    with pytest.raises(ConfigError) as refused:
        crossdock.plan({})
    assert refused.value.code == "process_forked"
