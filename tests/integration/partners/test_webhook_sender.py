"""What fakes send to the addresses that are subscribed, with and without faults."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partners.webhook_sender import Delivery, WebhookFault, WebhookSender, sending
from tests.unit.sandbox.webhook_receiver import Received, Receiver

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def headers(delivery: Delivery, _: datetime) -> Mapping[str, str]:
    return {"webhook-id": delivery.id, "x-attempt": str(delivery.attempts)}


def sender_of(
    address: str,
    count: int,
    ended: Callable[[Delivery, bool], None] = lambda _one, _two: None,
    transport: httpx.BaseTransport | None = None,
) -> WebhookSender:
    """A sender with *count* deliveries, each of which is attempted three times."""
    made = WebhookSender(headers, lambda: NOW, attempts=3, ended=ended, transport=transport)
    for number in range(count):
        made.add(Delivery(f"d{number}", "order", b"{%d}" % number, address, "s1", NOW))
    return made


def test_deliveries_are_sent_in_the_order_of_their_changes(receiver: Receiver) -> None:
    """Without faults each is sent once; the list of what was sent has the answers."""
    ended: list[tuple[str, bool]] = []
    sender = sender_of(receiver.url, 3, ended=lambda one, accepted: ended.append((one.id, accepted)))
    sender.send_all(random.Random(1))
    assert receiver.ids == ["d0", "d1", "d2"]
    assert [each.body for each in receiver.received] == [b"{0}", b"{1}", b"{2}"]
    assert ended == [("d0", True), ("d1", True), ("d2", True)]
    assert [(each.delivery.id, each.fault, each.accepted) for each in sender.sent] == [
        ("d0", None, True),
        ("d1", None, True),
        ("d2", None, True),
    ]
    assert sender.pending == []


def test_a_failure_is_sent_again_under_the_same_id(receiver: Receiver) -> None:
    """One round is one attempt; the vendor gives up after its last."""
    receiver.answer = lambda received: 200 if received.headers["x-attempt"] == "2" else 503
    ended: list[bool] = []
    sender = sender_of(receiver.url, 1, ended=lambda _, accepted: ended.append(accepted))
    sender.send_all(random.Random(1))
    assert [len(sender.pending), ended] == [1, []]
    sender.send_until_empty(random.Random(1))
    assert receiver.ids == ["d0", "d0", "d0"]
    assert ended == [True]
    receiver.answer = lambda _: 500
    sender.add(Delivery("d1", "order", b"{}", receiver.url, "s1", NOW))
    sender.send_until_empty(random.Random(1))
    assert receiver.ids[3:] == ["d1", "d1", "d1"]
    assert ended == [True, False]


def test_an_address_without_a_receiver_fails() -> None:
    """No answer is a failure too."""
    ended: list[bool] = []
    with Receiver() as gone:
        sender = sender_of(gone.url, 1, ended=lambda _, accepted: ended.append(accepted))
    sender.send_until_empty(random.Random(1))
    assert [each.status for each in sender.sent] == [None] * 3
    assert ended == [False]


def test_only_this_machine_is_called() -> None:
    """A test that subscribes another address has a defect."""
    with pytest.raises(AssertionError):
        sender_of("http://192.0.2.1/hook", 1).send_all(random.Random(1))


def one_fault(receiver: Receiver, fault: WebhookFault, count: int = 3) -> WebhookSender:
    sender = sender_of(receiver.url, count)
    sender.faults = {fault: 1.0}
    sender.send_all(random.Random(7))
    return sender


def test_a_lost_delivery_never_arrives(receiver: Receiver) -> None:
    """It is among what was sent, with its fault, and is not sent again."""
    sender = one_fault(receiver, "lost")
    assert receiver.ids == []
    assert sender.pending == []
    assert [(each.delivery.id, each.fault) for each in sender.sent] == [("d0", "lost"), ("d1", "lost"), ("d2", "lost")]


def test_a_doubled_delivery_arrives_twice(receiver: Receiver) -> None:
    """Both are equal, byte for byte."""
    one_fault(receiver, "doubled")
    assert receiver.ids == ["d0", "d0", "d1", "d1", "d2", "d2"]
    assert len({each.body for each in receiver.received}) == 3


def test_a_delayed_delivery_comes_in_the_next_round(receiver: Receiver) -> None:
    """It is delayed once."""
    sender = one_fault(receiver, "delayed")
    assert receiver.ids == []
    sender.send_all(random.Random(7))
    assert receiver.ids == ["d0", "d1", "d2"]


def test_reordered_deliveries_come_in_another_order(receiver: Receiver) -> None:
    """None is missing."""
    one_fault(receiver, "reordered", 20)
    assert receiver.ids != sorted(receiver.ids, key=lambda one: int(one[1:]))
    assert len(set(receiver.ids)) == 20


def test_a_replayed_request_is_an_earlier_one(receiver: Receiver) -> None:
    """Its headers and body are those of a request that was sent before."""
    sender = one_fault(receiver, "replayed", 10)
    assert len(receiver.received) == 20
    earlier = [(each.headers["webhook-id"], each.body) for each in receiver.received[:-1]]
    replayed = [each for each in sender.sent if each.fault == "replayed"]
    assert len(replayed) == 10
    assert all((each.headers["webhook-id"], each.body) in earlier for each in replayed)


def test_a_forged_request_has_another_body(receiver: Receiver) -> None:
    """It comes before the genuine one, with its headers."""
    sender = one_fault(receiver, "forged", 1)
    forged, genuine = receiver.received
    assert forged.id == genuine.id
    assert forged.body != genuine.body
    assert [each.fault for each in sender.sent] == ["forged", None]


@given(
    st.dictionaries(
        st.sampled_from(["lost", "doubled", "delayed", "reordered", "replayed", "forged"]), st.floats(0, 0.3)
    ),
    st.integers(),
)
def test_all_but_lost_deliveries_arrive(shares: Mapping[WebhookFault, float], seed: int) -> None:
    """Whatever the faults, each delivery that is not lost is accepted once as it was queued, and a seed repeats all."""
    histories = []
    for _ in range(2):
        sender = sender_of("http://127.0.0.1:9/hook", 30, transport=httpx.MockTransport(lambda _: httpx.Response(204)))
        sender.faults = shares
        sender.send_until_empty(random.Random(seed))
        history = [(each.delivery.id, each.fault) for each in sender.sent]
        genuine = Counter(name for name, fault in history if fault in {None, "reordered"})
        lost = {name for name, fault in history if fault == "lost"}
        assert genuine == Counter({f"d{number}" for number in range(30)} - lost)
        histories.append(history)
    assert histories[0] == histories[1]


def test_a_thread_sends_what_is_queued_meanwhile(receiver: Receiver) -> None:
    """At the end nothing is left."""
    receiver.answer = lambda received: 503 if (received.id, received.headers["x-attempt"]) == ("d1", "0") else 200
    sender = sender_of(receiver.url, 0)
    with sending(sender, random.Random(1)):
        for number in range(5):
            sender.add(Delivery(f"d{number}", "order", b"{}", receiver.url, "s1", NOW))
    assert Counter(receiver.ids) == Counter({"d0": 1, "d1": 2, "d2": 1, "d3": 1, "d4": 1})
    assert sender.pending == []


def test_a_subscription_that_has_ended_gets_nothing_more(receiver: Receiver) -> None:
    """What is queued for it is dropped, in the running round too."""
    sender = sender_of(receiver.url, 3)

    def answer(_: Received) -> int:
        sender.drop("s1")
        return 200

    receiver.answer = answer
    sender.send_until_empty(random.Random(1))
    assert receiver.ids == ["d0"]
