"""One harmless request, to learn whether the platform lets us in."""

from __future__ import annotations

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.platform import problems
from crossdock.platform.profile import Profile
from crossdock.platform.target import PlatformTarget


def reach(profile: Profile) -> None:
    """List one customer.

    Raises:
        UnauthorizedError: If the credential or the tenant is refused.
        UnavailableError: If there is no answer, or none that makes sense.
    """
    client = PlatformTarget(profile).client()
    try:
        answer = client.send("GET", profile.path("customer"), params={"limit": "1"})
    finally:
        client.close()
    if answer.status in {401, 403}:
        problem = problems.read(answer.status, answer.body)
        raise UnauthorizedError(
            f"refuses our credential: {problem.message} (HTTP {answer.status})",
            where=profile.base_url,
            hint="see platform.auth and platform.tenant",
        )
    if answer.status not in {200, 204, 429}:
        raise UnavailableError(f"answered HTTP {answer.status}", where=profile.base_url)
