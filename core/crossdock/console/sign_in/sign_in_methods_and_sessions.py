"""The ways in which people sign in to one console, and their sessions, which are in memory and end with the process."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct, structs
from starlette.requests import Request

from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.sign_in.attempt_limiter import AttemptLimiter
from crossdock.console.sign_in.openid_provider import OpenIdProvider, SignInRefusedError
from crossdock.console.visitors_and_roles import Person
from crossdock.errors import CrossdockError
from crossdock.values.clock import Clock
from crossdock.values.serving.cross_site_protection import Session

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


_LOGGER = logging.getLogger("crossdock.console")


class SignIn(Struct, frozen=True):
    """Local accounts, a provider, or both."""

    accounts: AccountFile | None
    provider: OpenIdProvider | None
    sessions: Sessions
    attempts: AttemptLimiter

    @classmethod
    def from_accounts_and_provider(
        cls, accounts: AccountFile | None, provider: OpenIdProvider | None, clock: Clock
    ) -> SignIn:
        return cls(accounts, provider, Sessions(clock), AttemptLimiter(clock))

    def person_of_session(self, _: Request, session: Session) -> Person | None:
        return self.sessions.person(session.id)

    def sign_in_with_password(self, session: Session, name: str, password: str, address: str) -> Person | None:
        """Begin a session if the password is right. Raises ConfigError, BusyError or TooManyAttemptsError."""
        assert self.accounts is not None
        accounts = self.accounts
        self.attempts.count_or_refuse_attempt(name, address)
        account = accounts.authenticate(name, password)
        if account is None:
            _LOGGER.warning("a sign-in from %s was refused", address)  # the name may be a password in the wrong field
            return None
        self.attempts.refund_attempt(name, address)
        self.end_session_and_renew_id(session)
        self.sessions.begin(session.id, lambda: accounts.person_if_password_unchanged(account))
        return accounts.person_if_password_unchanged(account)

    def sign_in_with_provider_answer(self, session: Session, origin: str, query: Mapping[str, str]) -> str:
        """Begin a session by the answer of the provider, and return the wanted page.

        Raises ConfigError, RefusedError or RemoteError.
        """
        assert self.provider is not None
        person, wanted = self.provider.identify_person_from_answer(session.id, origin, query)
        if self.accounts is not None and person.name in self.accounts.all():
            raise SignInRefusedError(f"{person.name} is the name of a local account.", "Sign in with its password.")
        self.end_session_and_renew_id(session)
        self.sessions.begin(session.id, lambda: person)
        return wanted

    def end_session_and_renew_id(self, session: Session) -> None:
        """End what was before, and give the browser an id that nobody else has seen."""
        self.sessions.end(session.id)
        session.renew_id()
