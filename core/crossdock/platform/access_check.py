"""One harmless request, to learn whether the platform lets us in, and what time it is there."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

from crossdock.clock import Clock
from crossdock.errors import ClockError, CrossdockError, UnauthorizedError, UnavailableError
from crossdock.pacing.rate_headers import http_date
from crossdock.platform import error_answers
from crossdock.platform.credentials import GrantedToken
from crossdock.platform.platform_target import PlatformTarget
from crossdock.platform.profile import Profile

ASKED_FOR_S = 10.0  # a scheduler waits no longer for the time of a platform that does not answer


def reach(profile: Profile) -> str:
    """List one customer.

    Returns:
        What was learned, in a line.

    Raises:
        UnauthorizedError: If the credential or the tenant is refused.
        UnavailableError: If there is no answer, or none that makes sense.
    """
    target = PlatformTarget(profile)
    client = target.client()
    try:
        answer = client.send("GET", profile.path("customer"), params={"limit": "1"})
    finally:
        client.close()
    if answer.status in {401, 403}:
        problem = error_answers.read(answer.status, answer.body)
        raise UnauthorizedError(
            f"refuses our credential: {problem.message[: error_answers.SHOWN]} (HTTP {answer.status})",
            where=profile.base_url,
            hint="see platform.auth and platform.tenant",
        )
    if answer.status not in {200, 204, 429}:
        raise UnavailableError(f"answered HTTP {answer.status}", where=profile.base_url)
    grant = target.credential.grant
    return f"{profile.base_url} lets us in" + (_told(grant) if grant else "")


def check_clock(profile: Profile, clock: Clock) -> bool:
    """Compare *clock* with the platform's, so that no run is started for a date that has not come.

    Returns:
        False if the platform did not answer, or without a date; the run itself will report why.

    Raises:
        ClockError: If they differ by more than ``platform.max_clock_skew_s``.
    """
    if profile.max_clock_skew_s is None:
        return True
    try:
        http = profile.http.model_copy(update={"total_timeout_s": min(ASKED_FOR_S, profile.http.total_timeout_s)})
        target = PlatformTarget(profile.model_copy(update={"http": http}), clock)
        with closing(target.client()) as client:
            answer = target.send(client, target.ping("customer"))
    except CrossdockError:
        return False
    there = http_date(answer.headers.get("date", ""))
    if there is None:
        return False
    ahead_s = clock.now().timestamp() - there
    if abs(ahead_s) > profile.max_clock_skew_s:
        direction = "ahead of" if ahead_s > 0 else "behind"
        raise ClockError(
            f"the clock of this machine is {timedelta(seconds=round(abs(ahead_s)))} {direction} the platform's",
            where=profile.base_url,
            hint="set the clock; no run was started, and those that are due then will be (platform.max_clock_skew_s)",
        )
    return True


def _told(grant: GrantedToken) -> str:
    text = f", with a token for {grant.life_s:.0f} s; scopes: {' '.join(grant.scopes) or 'not told'}"
    return f"{text}; wider than asked by: {' '.join(grant.unasked)}" if grant.unasked else text
