"""A transport that other processes can read over loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from crossdock.testing.httpx_transport_server import RESET, Fault, TransportServer, web_origins_in

ORIGIN = "https://api.example.com"


def answer(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/broken":
        raise httpx.ReadError("broken", request=request)
    link = f'<{request.url.copy_set_param("page", 2)}>; rel="next"'
    facts = {"url": str(request.url), "token": request.headers.get("authorization"), "sent": request.read().decode()}
    return httpx.Response(200, json=facts, headers={"link": link})


@pytest.fixture
def served() -> Iterator[TransportServer]:
    with TransportServer(httpx.MockTransport(answer), [ORIGIN]) as made:
        yield made


def test_requests_and_answers_are_as_the_transport_has_them(served: TransportServer) -> None:
    """Method, headers and body arrive; addresses in headers and bodies of answers are those of this machine."""
    here = served.text_with_local_addresses(ORIGIN)
    with httpx.Client(trust_env=False) as client:
        got = client.post(f"{here}/a?x=1", content=b"hi", headers={"authorization": "Bearer t"})
    assert got.json() == {"url": f"{here}/a?x=1", "token": "Bearer t", "sent": "hi"}
    assert got.headers["link"] == f'<{here}/a?x=1&page=2>; rel="next"'
    assert served.requests == 1


def test_faults_come_first_and_each_once(served: TransportServer) -> None:
    """A status, then a connection that is reset, as after an error of the transport; then proper answers."""
    served.faults = [503, RESET]
    here = served.text_with_local_addresses(ORIGIN)
    with httpx.Client(trust_env=False) as client:
        assert client.get(here).status_code == 503
        for path in ("/", "/broken"):
            with pytest.raises(httpx.TransportError):
                client.get(here + path)
        assert client.get(here).status_code == 200
    assert served.requests == 4


def test_an_error_of_the_transport_is_raised_at_the_end() -> None:
    """A fake that fails is seen, and what asks it does not wait."""

    def broken(_: httpx.Request) -> httpx.Response:
        raise KeyError("delivery")

    with (
        pytest.raises(KeyError, match="delivery"),
        TransportServer(httpx.MockTransport(broken), [ORIGIN]) as served,
        httpx.Client(trust_env=False) as client,
    ):
        assert client.get(served.text_with_local_addresses(ORIGIN)).status_code == 400


def test_a_request_that_is_cut_off_is_none() -> None:
    """A client that is killed while it sends its body has asked nothing."""
    asked: list[bytes] = []

    def noted(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        return httpx.Response(200)

    with TransportServer(httpx.MockTransport(noted), [ORIGIN]) as served:
        place = urlsplit(served.text_with_local_addresses(ORIGIN))
        with socket.create_connection((place.hostname, place.port)) as client:
            client.sendall(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf")
            client.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert served.requests == 0
    assert asked == []


def test_a_held_request_is_not_answered(served: TransportServer) -> None:
    """It is reset when it is no longer held, and the next one is answered."""
    here, failed = served.text_with_local_addresses(ORIGIN), threading.Event()

    def ask() -> None:
        with httpx.Client(trust_env=False, timeout=None) as client, pytest.raises(httpx.TransportError):
            client.get(here)
        failed.set()

    thread = threading.Thread(target=ask)
    with served.hold_request(1):
        thread.start()
        while not served.requests:
            assert thread.is_alive()
        assert not failed.is_set()
    thread.join()
    assert failed.is_set()
    with httpx.Client(trust_env=False) as client:
        assert client.get(here).status_code == 200


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_an_answer_is_lost_after_the_request_was_answered(fault: Fault) -> None:
    """The transport has the request, and the client has no whole answer."""
    asked: list[str] = []

    def noted(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, text="x" * 100)

    with TransportServer(httpx.MockTransport(noted), [ORIGIN]) as served, httpx.Client(trust_env=False) as client:
        served.faults = [fault]
        with pytest.raises(httpx.TransportError):
            client.get(f"{served.text_with_local_addresses(ORIGIN)}/a")
        assert client.get(f"{served.text_with_local_addresses(ORIGIN)}/b").text == "x" * 100
    assert asked == ["/a", "/b"]


@pytest.mark.parametrize("answered", [True, False])
def test_a_held_request_may_have_been_answered(answered: bool) -> None:
    """Whether the transport has it is chosen; the client has no answer."""
    asked: list[str] = []

    def noted(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200)

    def ask(address: str) -> None:
        with httpx.Client(trust_env=False, timeout=None) as client, pytest.raises(httpx.TransportError):
            client.post(address)

    with TransportServer(httpx.MockTransport(noted), [ORIGIN]) as served:
        thread = threading.Thread(target=ask, args=(f"{served.text_with_local_addresses(ORIGIN)}/a",))
        with served.hold_request(1, answered=answered):
            thread.start()
            while not served.is_holding:
                assert thread.is_alive()
        thread.join()
        assert not served.is_holding
    assert asked == (["/a"] if answered else [])


def test_a_write_that_is_late_is_held_in_its_place(served: TransportServer) -> None:
    """Requests that only read are answered, also the one with the number; the write after them is held."""
    here, failed = served.text_with_local_addresses(ORIGIN), threading.Event()

    def ask() -> None:
        with httpx.Client(trust_env=False, timeout=None) as client:
            assert [client.get(here).status_code for _ in range(3)] == [200] * 3
            with pytest.raises(httpx.TransportError):
                client.put(here)
        failed.set()

    thread = threading.Thread(target=ask)
    with served.hold_request(1, answered=True):
        thread.start()
        while not served.is_holding:
            assert thread.is_alive()
        assert served.requests == 4
    thread.join()
    assert failed.is_set()


def test_the_origins_of_settings_are_found() -> None:
    """Each text that is a web address, wherever it is."""
    settings = {"base_url": "https://a.example/v1", "other": [{"url": "http://b.example:81"}], "token": "env:T", "n": 1}
    assert web_origins_in(settings) == {"https://a.example", "http://b.example:81"}
