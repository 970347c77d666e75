"""A scheduler that serves the console too: its process, and clients that send slowly, do not read, or never pause."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.e2e.test_schedule_in_trouble import UNWELL, Watched, assert_ends_well, every_second, until_well
from tests.e2e.warehouse import Site
from tests.waiting import WITHIN_S

CLIENTS = 300
PIPELINED = 12_000
LONG_HEADER = b"X: " + b"x" * 8_000 + b"\r\n"  # so that 94 MB would be kept if all requests were read at once
POST = b"POST /t/{tenant}/do/sync HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
SLOW = (
    b"",
    b"GET / HTTP/1.1\r\nHost: {host}\r\nX: ",
    POST + b"Content-Length: 1000\r\n\r\ncsrf_token=",
    POST + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    b"GET /t/{tenant}/settings HTTP/1.1\r\nHost: {host}\r\n\r\n" * 5,  # whose answers are not read
)


def slow_clients(base_url: str, tenant: str, ended: threading.Event) -> None:
    """Keep 300 connections of slow clients open, with a new one for each that the server closes, until it has ended."""
    address, texts, opened = urlsplit(base_url), itertools.cycle(SLOW), list[socket.socket]()
    with suppress(ConnectionError):
        while not ended.wait(0.05):
            for each in [each for each in opened if is_closed(each)]:
                opened.remove(each)
            while len(opened) < CLIENTS:
                opened.append(socket.create_connection((str(address.hostname), address.port or 0), timeout=WITHIN_S))
                text = next(texts).replace(b"{host}", address.netloc.encode()).replace(b"{tenant}", tenant.encode())
                with suppress(OSError):  # it was closed already
                    opened[-1].sendall(text)
                opened[-1].setblocking(False)
    for each in opened:
        each.close()


def is_closed(wire: socket.socket) -> bool:
    """Whether the server has closed it; then it is closed here as well."""
    try:
        if wire.recv(1, socket.MSG_PEEK):
            return False
    except BlockingIOError:
        return False
    except OSError:
        pass
    wire.close()
    return True


def answered(base_url: str, path: str) -> bool:
    try:
        return httpx.get(f"{base_url}{path}", trust_env=False, timeout=WITHIN_S).status_code == 200
    except httpx.TransportError:
        return False


def process_of_console(processes: Watched) -> int:
    (pid,) = processes.pids
    (found,) = (each for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split())
    return int(found)


def test_the_console_comes_again_and_ends_with_the_service(site: Site) -> None:
    """It has a process of its own: once that is killed, it serves at the same address again; it survives no service."""
    every_second(site)
    with Watched(site, "--console", "0") as processes:
        (base_url,) = re.findall(r"console at (http://\S+)", processes.log)
        killed, (service,) = process_of_console(processes), processes.pids
        os.kill(killed, signal.SIGKILL)
        processes.until(lambda: "the console's process has ended with -9; it is started again" in processes.log)
        processes.until(lambda: answered(base_url, f"/t/{site.tenant}"))
        again = process_of_console(processes)
        assert again != killed
        processes.kill(service)
        processes.until(lambda: not Path(f"/proc/{again}").exists() or is_zombie(again))


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.nightly
def test_slow_clients_delay_no_run_and_keep_nobody_out(site: Site) -> None:
    """With 256 open files: runs begin on time and deliver, pages are answered to others, and the log is not filled."""
    every_second(site)
    ended = threading.Event()
    with Watched(site, "--console", "0", limits={resource.RLIMIT_NOFILE: 256}) as processes:
        (base_url,) = re.findall(r"console at (http://\S+)", processes.log)
        clients = threading.Thread(target=slow_clients, args=(base_url, site.tenant, ended))
        clients.start()
        try:
            for page in ("", "/runs", "/records"):
                processes.until(lambda page=page: answered(base_url, f"/t/{site.tenant}{page}"))  # type: ignore[misc]
            site.fill()
            until_well(site, processes)
            assert not UNWELL.search(processes.log)
            processes.until(lambda: answered(base_url, f"/t/{site.tenant}/runs"))
            assert_ends_well(site, processes)
        finally:
            ended.set()
            clients.join()
        assert "Traceback" not in processes.log, processes.log
        assert "Too many open files" not in processes.log


@contextmanager
def pipelined(base_url: str, path: str) -> Iterator[None]:
    """Send many requests for a page on one connection, and read their answers, until the block ends."""
    address = urlsplit(base_url)
    request = b"GET %b HTTP/1.1\r\nHost: %b\r\n" % (path.encode(), address.netloc.encode()) + LONG_HEADER + b"\r\n"

    def send() -> None:
        with suppress(OSError):  # the block has ended
            for _ in range(PIPELINED):
                wire.sendall(request)

    def read() -> None:
        with suppress(OSError):
            while wire.recv(1 << 16):
                pass

    with socket.create_connection((str(address.hostname), address.port or 0)) as wire:
        threads = [threading.Thread(target=each) for each in (send, read)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            wire.shutdown(socket.SHUT_RDWR)
            for each in threads:
                each.join()


def resident_mb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() >> 20


@pytest.mark.nightly
def test_pipelined_requests_delay_no_run_and_take_no_memory(site: Site) -> None:
    """12,000 on one connection are answered one after the other: runs begin and deliver, and others see pages."""
    every_second(site)
    with Watched(site, "--console", "0") as processes:
        (base_url,) = re.findall(r"console at (http://\S+)", processes.log)
        pid = process_of_console(processes)
        processes.until(lambda: answered(base_url, f"/t/{site.tenant}/settings"))
        before = resident_mb(pid)
        with pipelined(base_url, f"/t/{site.tenant}/settings"):
            site.fill()
            until_well(site, processes)
            processes.until(lambda: answered(base_url, f"/t/{site.tenant}/runs"))
            assert resident_mb(pid) - before < 40
            assert not UNWELL.search(processes.log)
        assert_ends_well(site, processes)
        assert "Traceback" not in processes.log, processes.log
