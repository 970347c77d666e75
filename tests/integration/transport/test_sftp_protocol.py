"""The SFTP conversation itself, against a peer made of bytes."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from crossdock.reading.transport import ssh_connection_and_sftp_protocol
from crossdock.reading.transport.ssh_connection_and_sftp_protocol import SftpProtocolError, SftpStatusError, SftpWire


class Peer:
    """Answers reads of *content* out of order, a little at a time, and as short as it likes."""

    def __init__(self, content: bytes, seed: int, end: int | None = None) -> None:
        self.content = content
        self.end = len(content) if end is None else end
        self.random = random.Random(seed)
        self.sent = bytearray()
        self.answers: list[bytes] = []
        self.outgoing = bytearray()
        self.most_ahead = 0
        self.most = 1 << 20  # bytes in an answer

    def send(self, data: bytes) -> None:
        self.sent += data
        while len(self.sent) >= 4 and len(self.sent) >= 4 + int.from_bytes(self.sent[:4]):
            length = int.from_bytes(self.sent[:4])
            request = bytes(self.sent[4 : 4 + length])
            del self.sent[: 4 + length]
            number = request[1:5]
            offset, wanted = struct.unpack(">QI", request[-12:])
            self.answers.append(self.answer(number, offset, wanted))
        self.most_ahead = max(self.most_ahead, len(self.answers))

    def answer(self, number: bytes, offset: int, wanted: int) -> bytes:
        data = self.content[offset : min(self.end, offset + wanted)]
        if not data:
            return message(
                ssh_connection_and_sftp_protocol.STATUS,
                number + struct.pack(">I", ssh_connection_and_sftp_protocol.END) + text(b"") + text(b""),
            )
        return message(
            ssh_connection_and_sftp_protocol.DATA,
            number + text(data[: self.random.randint(1, min(self.most, len(data)))]),
        )

    def receive(self, most: int) -> bytes:
        if not self.outgoing and self.answers:
            self.outgoing += self.answers.pop(self.random.randrange(len(self.answers)))
        count = self.random.randint(1, most)
        received = bytes(self.outgoing[:count])
        del self.outgoing[:count]
        return received


def message(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def scripted(*answers: bytes) -> SftpWire:
    """A wire whose peer says *answers*, whatever it is asked, and then hangs up."""
    said = [*answers, b""]
    return SftpWire(lambda data: None, lambda most: said.pop(0), lambda: None)


@settings(max_examples=examples(60), deadline=None)
@given(
    size=st.integers(0, 5000),
    chunk=st.integers(1, 700),
    window=st.integers(1, 3000),
    seed=st.integers(0, 2**32),
    cut=st.none() | st.integers(0, 5000),
)
def test_reads_exactly_what_the_server_has(size: int, chunk: int, window: int, seed: int, cut: int | None) -> None:
    """However answers are shuffled, cut and split, the bytes come in order and stop where the server's end is."""
    content = random.Random(seed).randbytes(size)
    peer = Peer(content, seed, min(size, cut) if cut is not None else None)
    wire = SftpWire(peer.send, peer.receive, lambda: None)
    before, ssh_connection_and_sftp_protocol.CHUNK = ssh_connection_and_sftp_protocol.CHUNK, chunk
    try:
        read = b"".join(wire.read_whole_file(b"h", size, window))
    finally:
        ssh_connection_and_sftp_protocol.CHUNK = before
    assert content.startswith(read)
    assert len(read) == peer.end
    assert peer.most_ahead <= window // chunk + 3  # a begun block, the last one, and what should not be there


def test_tiny_answers_are_not_taken_for_ever() -> None:
    """Answers far below what was asked for are put up with for a while, and no longer."""
    peer = Peer(b"x" * 1_000_000, seed=1)
    peer.most = 1
    with pytest.raises(SftpProtocolError, match="10,0.. responses contained only"):
        list(SftpWire(peer.send, peer.receive, lambda: None).read_whole_file(b"h", 1_000_000, 100_000))


@pytest.mark.parametrize("more", [1, 100])
def test_one_byte_too_many_shows_that_a_file_grew(more: int) -> None:
    """Reading goes one byte past the size that the caller knew, and no further."""
    peer = Peer(b"x" * (1000 + more), seed=1)
    wire = SftpWire(peer.send, peer.receive, lambda: None)
    assert len(b"".join(wire.read_whole_file(b"h", 1000, 10_000))) == 1001


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(b"HTTP/1.1 400 Bad", "claims to be 1213486160 bytes", id="something else"),
        pytest.param(struct.pack(">I", 0), "claims to be 0 bytes", id="empty"),
        pytest.param(message(103, struct.pack(">I", 1)), "ends too early", id="kind"),
        pytest.param(message(103, struct.pack(">I", 1) + text(b"xyz")), "longer than requested", id="more than asked"),
        pytest.param(message(103, struct.pack(">II", 1, 9) + b"x"), "ends too early", id="cut"),
        pytest.param(message(105, struct.pack(">II", 1, 0)), "received message 105 instead of 103", id="wrong kind"),
        pytest.param(
            message(103, struct.pack(">I", 99) + text(b"x")),
            "a response arrived that matches no request",
            id="unsolicited",
        ),
        pytest.param(message(103, b""), "ends too early", id="no number"),
    ],
)
def test_garbage_is_a_protocol_error(answer: bytes, reason: str) -> None:
    """What is no answer ends the conversation instead of being guessed at."""
    with pytest.raises(SftpProtocolError, match=reason):
        list(scripted(answer).read_whole_file(b"h", 2, 1000))


def test_a_failure_in_the_middle_of_a_file_is_told() -> None:
    """Any status but the end of the file is a failure, never an end."""
    failure = message(
        ssh_connection_and_sftp_protocol.STATUS, struct.pack(">II", 1, 4) + text(b"disk\x1b[2J failed") + text(b"")
    )
    with pytest.raises(SftpStatusError, match=r"^failure \(status 4\)$"):
        list(scripted(failure).read_whole_file(b"h", 2, 1000))


@pytest.mark.parametrize("version", [2, 6])
def test_other_versions_are_refused(version: int) -> None:
    """A server that speaks another SFTP is told so."""
    with pytest.raises(SftpProtocolError, match=f"SFTP version {version}"):
        scripted(
            message(ssh_connection_and_sftp_protocol.SERVER_VERSION, struct.pack(">I", version))
        ).negotiate_version()


def test_a_greeting_must_be_one() -> None:
    """Something else in place of the greeting is a protocol error, a closed door the end."""
    with pytest.raises(SftpProtocolError, match="instead of the version"):
        scripted(message(ssh_connection_and_sftp_protocol.STATUS, b"\0" * 12)).negotiate_version()
    with pytest.raises(EOFError):
        scripted().negotiate_version()


def test_an_end_is_no_answer_to_a_question() -> None:
    """A server that answers anything but a read or a listing with the end is not believed."""
    end = message(
        ssh_connection_and_sftp_protocol.STATUS,
        struct.pack(">II", 1, ssh_connection_and_sftp_protocol.END) + text(b"") + text(b""),
    )
    with pytest.raises(SftpProtocolError, match="unexpected end of file"):
        scripted(end).lstat(b"a")


def test_a_listing_that_never_ends_with_nothing_is_refused() -> None:
    """An empty page of a listing is no page."""
    handle = message(ssh_connection_and_sftp_protocol.HANDLE, struct.pack(">I", 1) + text(b"h"))
    empty = message(ssh_connection_and_sftp_protocol.NAME, struct.pack(">II", 2, 0))
    with pytest.raises(SftpProtocolError, match="part of a listing is empty"):
        list(scripted(handle, empty).list_folder(b"."))


def test_attributes_may_be_left_out_or_extended() -> None:
    """What a server leaves out is None; what it adds is passed over."""
    flags = struct.pack(">I", 0x8000_0008)
    body = flags + struct.pack(">III", 5, 7, 1) + text(b"vendor") + text(b"value")
    found = scripted(message(ssh_connection_and_sftp_protocol.ATTRS, struct.pack(">I", 1) + body)).lstat(b"a")
    assert (found.size, found.mode, found.mtime) == (None, None, 7)
