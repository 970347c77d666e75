"""One harmless request, to learn whether the platform lets us in."""

from __future__ import annotations

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.platform import problems
from crossdock.platform.auth import Grant
from crossdock.platform.profile import Profile
from crossdock.platform.target import PlatformTarget


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
        problem = problems.read(answer.status, answer.body)
        raise UnauthorizedError(
            f"refuses our credential: {problem.message[: problems.SHOWN]} (HTTP {answer.status})",
            where=profile.base_url,
            hint="see platform.auth and platform.tenant",
        )
    if answer.status not in {200, 204, 429}:
        raise UnavailableError(f"answered HTTP {answer.status}", where=profile.base_url)
    grant = target.credential.grant
    return f"{profile.base_url} lets us in" + (_told(grant) if grant else "")


def _told(grant: Grant) -> str:
    text = f", with a token for {grant.life_s:.0f} s; scopes: {' '.join(grant.scopes) or 'not told'}"
    return f"{text}; wider than asked by: {' '.join(grant.unasked)}" if grant.unasked else text
