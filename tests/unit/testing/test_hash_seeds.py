"""Keys and drafts that depend on how Python hashes texts are found."""

from __future__ import annotations

import os
import sys
import threading

import httpx
import pytest
from tests.unit.testing.checkpointed_connector import DraftFromASetContract, KeyFromHashContract
from tests.unit.testing.reference_connector import OrdersContract

from crossdock.testing.reading_with_two_hash_seeds import read_with_two_seeds


def is_other_process() -> bool:
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name == "crossdock.testing.reading_with_two_hash_seeds"


class NeverEnds(OrdersContract):
    def network(self) -> httpx.BaseTransport:
        if is_other_process():
            threading.Event().wait()
        return super().network()


class EndsItsProcess(OrdersContract):
    def network(self) -> httpx.BaseTransport:
        if is_other_process():
            os._exit(3)
        return super().network()


def test_each_process_reads_every_record() -> None:
    """A reading has the key, the rows and the draft of each record."""
    first, second = read_with_two_seeds(OrdersContract)
    assert first == second
    assert [key for key, *_ in first] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("case", [KeyFromHashContract, DraftFromASetContract])
def test_a_seeded_bug_is_found(case: type[OrdersContract]) -> None:
    """A key from ``hash()``, and a draft from the order of a set, differ between processes."""
    with pytest.raises(AssertionError, match="in another"):
        case().test_keys_and_drafts_are_the_same_in_every_process()


def test_a_process_that_cannot_read_says_why() -> None:
    """The error contains the traceback of that process, which reads the next stream as before."""

    class Local(OrdersContract):
        """Not at the top level of its module, so that another process cannot find it."""

    with pytest.raises(AssertionError, match=r"Local: the second reading, .* fails, but not the first one:\n.*Trace"):
        read_with_two_seeds(Local)
    test_each_process_reads_every_record()


def test_a_reading_that_does_not_end_is_named_with_its_place() -> None:
    """The error says which process reads for how long, and shows where it is."""
    read_with_two_seeds(OrdersContract)  # so that it has imported this module
    with pytest.raises(AssertionError, match=r"NeverEnds: the second .* did not end within 1 s; look for") as failed:
        read_with_two_seeds(NeverEnds, within_s=1)
    assert 'File "' in str(failed.value)


@pytest.mark.nightly
def test_a_process_that_has_ended_is_replaced() -> None:
    """Code of the connector that ends its process fails its own test alone."""
    with pytest.raises(AssertionError, match=r"EndsItsProcess: the second reading, .* ended its process"):
        read_with_two_seeds(EndsItsProcess)
    test_each_process_reads_every_record()
