"""Runs on an existing Dask cluster. Only this module imports ``distributed``, which the extra ``dask`` installs.

Facts about ``Client`` and ``Client.get_executor``: https://distributed.dask.org/en/stable/api.html
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar

from distributed import Client
from distributed.security import Security

from crossdock.errors import ConfigError, UnavailableError
from crossdock.services.fleet.executor_kinds_by_entry_point import ExecutorKind

T = TypeVar("T")
CONNECT_S = 10.0
_SCHEMES = ("tcp://", "tls://")
logging.getLogger("distributed").addHandler(logging.NullHandler())


@contextmanager
def _open_dask_executor(address: str, at_once: int) -> Iterator[Executor]:  # noqa: ARG001  the cluster has threads of its own
    if not address.startswith(_SCHEMES):
        hint = "for example dask=tcp://127.0.0.1:8786"
        raise ConfigError(
            f"{address!r} is not the address of a Dask scheduler",
            where="--executor",
            hint=hint,
            code="option_value_invalid",
        )
    try:
        client = Client(
            address, timeout=CONNECT_S, set_as_default=False, security=_tls_settings(address), name="crossdock"
        )
    except (OSError, TimeoutError) as error:
        hint = "start it with 'dask scheduler'; runs that are due wait for it"
        raise UnavailableError(
            "the Dask scheduler does not answer", where=address, hint=hint, code="executor_unavailable"
        ) from error
    try:
        yield _ClusterExecutor(client, address)
    finally:
        client.close(timeout=CONNECT_S)


class _ClusterExecutor(Executor):
    """The executor of a client. It refuses calls without workers, so that they wait where they are reported."""

    def __init__(self, client: Client, address: str) -> None:
        self._client, self._address = client, address
        # Not pure: two calls for one run are two calls. A call whose worker was killed is made again by the cluster.
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        if not self._client.nthreads():
            hint = "start some with 'dask worker'; runs that are due wait for them"
            raise UnavailableError(
                "the Dask cluster has no workers", where=self._address, hint=hint, code="executor_unavailable"
            )
        return self._executor.submit(fn, *args, **kwargs)


def _tls_settings(address: str) -> Security | None:
    """Return the certificates as Dask's own configuration names them (``distributed.comm.tls``)."""
    return Security(require_encryption=True) if address.startswith("tls://") else None


DASK = ExecutorKind(_open_dask_executor, needs_address=True, on_other_hosts=True)
