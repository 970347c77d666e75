"""Passes connections on to a port of this machine, each way after half a round trip: run as a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PIECE = 65_536


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Write what is read, in order, *delay_s* later; pieces that follow each other do not wait for each other."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def write() -> None:
        while True:
            due, piece = await queue.get()
            await asyncio.sleep(due - loop.time())
            if not piece:
                writer.close()
                return
            writer.write(piece)

    writing = asyncio.create_task(write())
    with suppress(ConnectionError):  # the other side is told by the end
        while piece := await reader.read(_PIECE):
            queue.put_nowait((loop.time() + delay_s, piece))
    queue.put_nowait((loop.time() + delay_s, b""))
    await writing


async def _serve(port: int, delay_s: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, back, delay_s), _pass_on(there, writer, delay_s))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@contextmanager
def delayed(port: int, round_trip_ms: int) -> Iterator[int]:
    """A port that leads to *port*, with a round trip that is longer by so much."""
    command = [sys.executable, "-m", "tests.benchmarks.delaying_proxy", str(port), str(round_trip_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout is not None
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.terminate()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]) / 2000))
