"""Who has signed in, by the session of the browser. Sessions are in memory: they end with the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct, structs

from crossdock.console.visitors_and_roles import Person
from crossdock.errors import CrossdockError
from crossdock.values.clock import Clock

LASTS_S = 12 * 3600.0
IDLE_S = 3600.0
_REMEMBERED = 10_000


class _SignedIn(Struct, frozen=True):
    person: Callable[[], Person | None]
    began_at: float
    seen_at: float


class Sessions:
    """The sessions of people, by the id of `csrf_protected_forms.Session`. Any thread may use them."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._known: OrderedDict[str, _SignedIn] = OrderedDict()

    def begin(self, session: str, find_person: Callable[[], Person | None]) -> None:
        """Begin *session*. *find_person* returns who it is at each request, and None once that is nobody any more."""
        now = self._clock.monotonic()
        with self._lock:
            self._known[session] = _SignedIn(find_person, now, now)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def end(self, session: str) -> None:
        with self._lock:
            self._known.pop(session, None)

    def person(self, session: str) -> Person | None:
        """Return who sent a request in *session*; None if nobody has signed in, or that has ended."""
        now = self._clock.monotonic()
        with self._lock:
            known = self._known.get(session)
            if known is None:
                return None
            if now - known.began_at >= LASTS_S or now - known.seen_at >= IDLE_S:
                del self._known[session]
                return None
            self._known[session] = structs.replace(known, seen_at=now)
            self._known.move_to_end(session)
        try:
            found = known.person()
        except CrossdockError:  # the page at which one signs in says why
            return None
        if found is None:
            self.end(session)
        return found
