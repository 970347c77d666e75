"""Whose turn it is when some streams wait for late files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast, get_args

from hypothesis import given
from hypothesis import strategies as st

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Stream
from crossdock.mapping.resource_types import RESOURCES
from crossdock.reading.sources.expected_and_late_files import LateFileError
from crossdock.resources import ResourceModel, ResourceName
from crossdock.runs.stream_delivery import StreamOrder
from crossdock.state import Scope
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import POLL
from crossdock.values.run_progress_and_messages import SilentProgress

ORDER = list(RESOURCES)


class Kind:
    """What a turn asks of a stream."""

    def __init__(self, resource: ResourceName) -> None:
        self.resource_type = RESOURCES[resource]


def bound(name: str, resource: ResourceName, target: str = "platform") -> BoundStream:
    stream, nothing = cast("Stream[Any]", Kind(resource)), cast("Any", None)
    return BoundStream(name, "wms", stream, Scope(target, resource, "wms"), nothing, nothing)


def stream_order(
    streams: list[BoundStream],
    files_at_s: Mapping[str, int],
    *,
    poll_s: int = 60,
    interrupted: Callable[[ManualClock], bool] = lambda _: False,
) -> list[tuple[str, int]]:
    """Which stream went when, in seconds; one goes when its file is there, and is put off before."""
    clock, asked, went = Clock(), threading.Event(), list[tuple[str, int]]()
    clock.slept = lambda: asked.set() if interrupted(clock) else None
    given_ = StreamOrder(streams, clock, SilentProgress(), asked)
    for one in given_:
        if one is None:
            continue
        left = files_at_s.get(one.name, 0) - clock.monotonic()
        if asked.is_set():
            went.append((f"stopped before {one.name}", int(clock.monotonic())))
            return went
        if left > 0:
            given_.postpone_late_stream(one, LateFileError("late", where="here", pause=timedelta(seconds=poll_s)))
        else:
            went.append((one.name, int(clock.monotonic())))
    return went


class Clock(ManualClock):
    def __init__(self) -> None:
        super().__init__()
        self.slept: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.slept()


CUSTOMERS, PRODUCTS = bound("customers", "customer"), bound("products", "product")
LOTS, ORDERS = bound("lots", "inventory_lot"), bound("orders", "order")


def test_nobody_waits_where_everything_is_there() -> None:
    """Streams go in the order they are given."""
    assert stream_order([CUSTOMERS, PRODUCTS, LOTS], {}) == [("customers", 0), ("products", 0), ("lots", 0)]


def test_who_is_late_holds_up_those_who_refer_to_it_and_nobody_else() -> None:
    """While customers are late, products and lots go; orders go after the customers."""
    went = stream_order([CUSTOMERS, PRODUCTS, LOTS, ORDERS], {"customers": 100})
    assert went == [("products", 0), ("lots", 0), ("customers", 120), ("orders", 120)]


def test_each_goes_as_soon_as_it_can() -> None:
    """Of several late ones each is asked in its own time."""
    went = stream_order([CUSTOMERS, PRODUCTS, LOTS, ORDERS], {"customers": 300, "products": 100, "orders": 301})
    assert went == [("products", 120), ("lots", 120), ("customers", 300), ("orders", 360)]


def test_another_target_waits_for_nobody() -> None:
    """A late stream holds up those that refer to its records at the same target only."""
    elsewhere = bound("elsewhere", "order", target="shop")
    went = stream_order([CUSTOMERS, ORDERS, elsewhere], {"customers": 100})
    assert went == [("elsewhere", 0), ("customers", 120), ("orders", 120)]


def test_a_pause_is_shared_with_the_other_targets() -> None:
    """While every stream waits, there is None after each short pause, so that the caller can go on elsewhere."""
    clock = ManualClock()
    order = StreamOrder([LOTS], clock, SilentProgress(), threading.Event())
    turns = iter(order)
    assert next(turns) is LOTS
    order.postpone_late_stream(LOTS, LateFileError("late", where="here", pause=timedelta(seconds=1)))
    assert [next(turns) for _ in range(4)] == [None] * 4
    assert (next(turns), clock.monotonic()) == (LOTS, 1.0)


def test_an_interrupted_pause_ends_at_once() -> None:
    """However long the pause, the stream that was waited for comes within a glance of the interrupt."""
    went = stream_order([LOTS], {"lots": 9_000}, poll_s=3_600, interrupted=lambda clock: clock.monotonic() >= 100)
    assert went == [("stopped before lots", 100)]
    assert timedelta(seconds=1) > POLL


@given(
    resources=st.lists(st.sampled_from(ORDER), max_size=6),
    late=st.lists(st.sampled_from([0, 0, 100, 130, 1_000]), min_size=6, max_size=6),
)
def test_everybody_goes_once_and_after_its_parents(resources: list[ResourceName], late: list[int]) -> None:
    """Every stream goes once, its file there, after those it may refer to, and at once if none of them is late."""
    streams = [bound(f"s{number}", name) for number, name in enumerate(sorted(resources, key=ORDER.index))]
    files_at = {one.name: at_s for one, at_s in zip(streams, late, strict=False)}
    went = stream_order(streams, files_at)
    assert sorted(name for name, _ in went) == [one.name for one in streams]
    at, place = dict(went), {name: number for number, (name, _) in enumerate(went)}
    for number, one in enumerate(streams):
        before = [other for other in streams[:number] if other.scope.resource in one.resource_type.parents]
        assert at[one.name] >= files_at[one.name]
        assert all(place[other.name] < place[one.name] for other in before)
        free = not any(files_at[other.name] for other in streams if other.scope.resource in one.resource_type.parents)
        assert not (free and files_at[one.name] == 0 and at[one.name] > 0)


def test_the_parents_are_those_of_the_resources() -> None:
    """Every field of a draft that refers to another record has a parent, and parents come before, or are the same."""
    kinds: dict[str, ResourceName] = {"bin_id": "warehouse_bin"}
    for name, kind in RESOURCES.items():
        found = set[str]()
        for model in (kind.draft, *_parts(kind.draft)):
            for field in model.model_fields:
                if field == "parent_id":
                    found.add(name)
                elif field.endswith("_id") and field != "tax_id":
                    found.add(kinds.get(field, field.removesuffix("_id")))
        assert kind.parents == found
        assert all(parent == name or not RESOURCES[parent].parents for parent in found)


def _parts(model: type[ResourceModel]) -> list[type[ResourceModel]]:
    inside = [part for field in model.model_fields.values() for part in get_args(field.annotation)]
    return [part for part in inside if isinstance(part, type) and issubclass(part, ResourceModel)]
