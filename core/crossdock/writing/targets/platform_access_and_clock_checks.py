"""Checks of access to the platform, and of its clock, with only the requests that the config's streams need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

from msgspec import Struct

from crossdock.errors import ClockError, CrossdockError, UnauthorizedError, UnavailableError
from crossdock.pacing.answer_headers import parse_http_date
from crossdock.platform import needed_and_granted_scopes
from crossdock.platform.credentials import GrantedToken
from crossdock.platform.platform_config import Profile
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values.clock import Clock, SystemClock
from crossdock.writing.targets.platform_target import PlatformTarget

CLOCK_TIMEOUT_S = 10.0  # a scheduler waits no longer for a platform that does not answer
_INSUFFICIENT_SCOPE = re.compile(r'\berror\s*=\s*"?insufficient_scope\b', re.IGNORECASE)


class PlatformAccess(Struct, frozen=True):
    """What the platform grants.

    Attributes:
        scopes: The granted scopes; None if neither introspection nor the token endpoint states them.
        ahead_s: By how much the local clock is ahead of the platform's; None if its answers do not state the time.
    """

    text: str
    unreadable: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    ahead_s: float | None = None


def read_platform_access_or_raise(profile: Profile, resources: Sequence[str]) -> PlatformAccess:
    """List one record of each of *resources*, and request the scopes if the profile has an ``introspection_url``.

    An answer that the scope is insufficient proves that the credential is valid, and so does one successful request.
    """
    target, clock = PlatformTarget(profile), SystemClock()
    with closing(target.client()) as client:
        answers = {resource: target.send(client, resource, target.ping(resource)) for resource in resources}
        ahead = [_clock_ahead_s(answer, clock) for answer in answers.values()][-1:]
    forbidden = {resource: answer for resource, answer in answers.items() if answer.status == 403}
    is_valid = len(forbidden) < len(answers) or any(map(_says_insufficient_scope, forbidden.values()))
    for resource, answer in answers.items():
        if answer.status == 401 or (answer.status == 403 and not is_valid):
            problem = http_answers_and_errors.parse_error_answer(answer.status, answer.body)
            raise UnauthorizedError(
                f"rejected the credential: {problem.message[: http_answers_and_errors.SHOWN]} (HTTP {answer.status})",
                where=profile.base_url,
                hint=f"see platform.auth and platform.tenant; the request was to list one {resource}",
                code="target_unauthorized",
            )
        if answer.status not in {200, 204, 403, 429}:
            raise UnavailableError(
                f"responded with HTTP {answer.status}", where=profile.base_url, code="target_unavailable"
            )
    token = target.credential.current_token
    text = f"{profile.base_url} grants access" + (_token_description(token) if token else "")
    if profile.introspection_url is not None:
        scopes = needed_and_granted_scopes.introspect_granted_scopes(
            profile, profile.introspection_url, target.credential
        )
    else:
        scopes = (token.scopes or None) if token else None
    return PlatformAccess(text, tuple(forbidden), scopes, *ahead)


def _says_insufficient_scope(answer: Answer) -> bool:
    """Return whether a 403 says that the token is valid and its scope insufficient (RFC 6750, section 3.1)."""
    return _INSUFFICIENT_SCOPE.search(answer.headers.get("www-authenticate", "")) is not None


def compare_clock_or_raise(profile: Profile, clock: Clock, resource: str) -> bool:
    """Compare *clock* with the platform's, so that no run starts for a date that has not come.

    Returns False if no answer has a date: the run itself will report why. Raises ClockError as
    `raise_if_clock_difference_too_large`.
    """
    if profile.max_clock_skew_s is None:
        return True
    timeout_s = min(CLOCK_TIMEOUT_S, profile.http.total_timeout_s)
    http = profile.http.model_copy(update={"total_timeout_s": timeout_s})
    try:
        target = PlatformTarget(profile.model_copy(update={"http": http}), clock)
        with closing(target.client()) as client:
            answer = target.send(client, resource, target.ping(resource))
    except CrossdockError:
        return False
    ahead_s = _clock_ahead_s(answer, clock)
    if ahead_s is None:
        return False
    raise_if_clock_difference_too_large(profile, ahead_s)
    return True


def raise_unless_clock_is_proved_right(profile: Profile, clock: Clock, resource: str) -> None:
    """Compare *clock* with the platform's before something is deleted by its age.

    Raises ClockError as `raise_if_clock_difference_too_large`, and UnavailableError if no answer has a date.
    """
    if not compare_clock_or_raise(profile, clock, resource):
        raise UnavailableError(
            "did not tell its time, by which the clock of this machine is checked before old data is deleted",
            where=profile.base_url,
            hint="'crossdock check' tests access; if no answer ever has a Date, set platform.max_clock_skew_s: null",
            code="target_unavailable",
        )


def _clock_ahead_s(answer: Answer, clock: Clock) -> float | None:
    platform_s = parse_http_date(answer.headers.get("date", ""))
    return None if platform_s is None else clock.now().timestamp() - platform_s


def raise_if_clock_difference_too_large(profile: Profile, ahead_s: float) -> None:
    """Raise ClockError if the clocks differ by more than ``platform.max_clock_skew_s``."""
    if profile.max_clock_skew_s is not None and abs(ahead_s) > profile.max_clock_skew_s:
        direction = "ahead of" if ahead_s > 0 else "behind"
        raise ClockError(
            f"the clock of this machine is {timedelta(seconds=round(abs(ahead_s)))} {direction} the platform's",
            where=profile.base_url,
            hint="set the clock; due runs start once it is right (platform.max_clock_skew_s)",
        )


def _token_description(token: GrantedToken) -> str:
    text = f", with a token for {token.life_s:.0f} s; scopes: {' '.join(token.scopes) or 'not reported'}"
    return f"{text}; more than requested: {' '.join(token.extra_scopes)}" if token.extra_scopes else text
