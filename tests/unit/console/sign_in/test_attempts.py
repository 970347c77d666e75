"""Attempts to sign in: wrong ones tell nothing, and there are not many."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from argon2 import PasswordHasher
from tests.consoles import PASSWORD, ServedConsole

from crossdock.console.sign_in import attempt_limiter, password_hashes
from crossdock.console.sign_in.attempt_limiter import AttemptLimiter, TooManyAttemptsError
from crossdock.testing.manual_clock import ManualClock

WRONG = "wrong horse battery"


class Counted:
    """A hasher that remembers with which parameters it has verified."""

    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher, self.verified = hasher, list[str]()
        self.hash = hasher.hash

    def verify(self, known: str, password: bytes) -> bool:
        self.verified.append(known.rpartition("$")[0].rpartition("$")[0])
        return self._hasher.verify(known, password)


def test_an_unknown_name_is_refused_as_a_wrong_password_is(
    console: ServedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answer, after the same computation."""
    counted = Counted(password_hashes._HASHER)
    monkeypatch.setattr(password_hashes, "_HASHER", counted)
    refused = [console.browser().sign_in(name, WRONG) for name in ("anna", "nobody")]
    assert [each.status_code for each in refused] == [401, 401]
    said = [each.text.partition('id="problem"')[2].partition("</p>")[0] for each in refused]
    assert said[0] == said[1] != ""
    assert len(counted.verified) == 2
    assert counted.verified[0] == counted.verified[1] != ""


def test_after_five_wrong_passwords_one_waits(console: ServedConsole) -> None:
    """Then even the right one is not tried, until half a minute has passed; a right one gives its attempt back."""
    browser = console.browser()
    assert [browser.sign_in("anna", WRONG).status_code for _ in range(6)] == [401] * 5 + [429]
    refused = browser.sign_in("anna")
    assert refused.status_code == 429
    assert "Try again in 30 seconds." in refused.text
    assert browser.sign_in("ben").status_code == 303
    console.clock.advance(30)
    assert [console.browser().sign_in("anna").status_code for _ in range(3)] == [303] * 3


def test_names_that_are_no_accounts_count_as_well(console: ServedConsole) -> None:
    """So the limit does not tell which names are."""
    browser = console.browser()
    assert [browser.sign_in("nobody", WRONG).status_code for _ in range(6)] == [401] * 5 + [429]


def refusals(tried: Sequence[tuple[str, str]]) -> list[bool]:
    """Whether each of these attempts, by name and address, is refused."""
    made, found = AttemptLimiter(ManualClock()), list[bool]()
    for name, address in tried:
        try:
            made.count_or_refuse_attempt(name, address)
        except TooManyAttemptsError:
            found.append(True)
        else:
            found.append(False)
    return found


def test_one_address_may_try_twenty_names() -> None:
    """Also a network of IPv6, of which one client has all addresses."""
    assert refusals([(f"n{number}", "192.0.2.1") for number in range(21)]) == [False] * 20 + [True]
    assert refusals([(f"n{number}", f"2001:db8::{number:x}") for number in range(21)]) == [False] * 20 + [True]


def test_nobody_locks_out_others_from_one_address() -> None:
    """Whoever uses up the attempts of a name at one address leaves those at other addresses."""
    tried = [("anna", "192.0.2.1")] * 300
    assert not refusals([*tried, ("anna", "192.0.2.2")])[-1]


def test_many_addresses_share_fifty_attempts_at_a_name() -> None:
    """A distributed search is limited, too."""
    assert refusals([("anna", f"192.0.2.{number}") for number in range(51)]) == [False] * 50 + [True]


def test_the_memory_of_attempts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten."""
    monkeypatch.setattr(attempt_limiter, "_REMEMBERED", 9)
    made = AttemptLimiter(ManualClock())
    for number in range(20):
        made.count_or_refuse_attempt(f"n{number}", f"192.0.2.{number}")
    assert len(made._buckets) == 9


def test_passwords_are_checked_two_at_a_time(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 64 MiB: one more waits, and is told that the console is busy."""
    monkeypatch.setattr(password_hashes, "WAITS_S", 0.0)
    for _ in range(password_hashes.AT_ONCE):
        assert password_hashes._RUNNING.acquire(timeout=0)
    try:
        assert console.browser().sign_in("anna").status_code == 503
    finally:
        for _ in range(password_hashes.AT_ONCE):
            password_hashes._RUNNING.release()
    assert console.browser().sign_in("anna", PASSWORD).status_code == 303
