"""The pages at which people sign in and out."""

from __future__ import annotations

import math
import re

from starlette.responses import Response

from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.sign_in.attempt_limiter import TooManyAttemptsError, TooManyPasswordChecksError
from crossdock.console.sign_in.openid_provider import SignInRefusedError
from crossdock.console.sign_in.sign_in_methods_and_sessions import SignIn
from crossdock.values.texts_of_numbers_and_times import count_with_noun

_MAX_WANTED = 2_000  # characters
_OF_THIS_SERVER = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # printable ASCII without a backslash, and no other host


def show_sign_in(visit: PageRequest) -> Response:
    wanted = safe_redirect_address(visit.query.get("next", ""))
    return visit.redirect(wanted) if visit.person.name else _sign_in_page(visit, _required_sign_in(visit), wanted)


def sign_in_with_password(visit: PageRequest) -> Response:
    """Check a name and its password."""
    sign_in, form = _required_sign_in(visit), visit.form
    if sign_in.accounts is None or form is None:
        raise PageError(404, "There are no accounts here.")
    name, wanted = form.first_or_empty("name").lower(), safe_redirect_address(form.first_or_empty("next"))
    password = next(iter(form.all("password")), "")
    try:
        person = sign_in.sign_in_with_password(visit.session, name, password, visit.address)
    except TooManyAttemptsError as error:
        wait = count_with_noun(math.ceil(error.wait_s), "second")
        return _sign_in_page(
            visit, sign_in, wanted, name, f"There were too many attempts. Try again in {wait}.", status=429
        )
    except TooManyPasswordChecksError:
        return _sign_in_page(visit, sign_in, wanted, name, "The console is busy. Try again.", status=503)
    if person is None:
        return _sign_in_page(visit, sign_in, wanted, name, "The name or the password is wrong.", status=401)
    return visit.redirect(wanted)


def sign_out(visit: PageRequest) -> Response:
    """End the session."""
    _required_sign_in(visit).end_session_and_renew_id(visit.session)
    return visit.redirect("/sign-in")


def redirect_to_provider(visit: PageRequest) -> Response:
    """Send the browser to the OpenID Connect provider."""
    sign_in = _required_sign_in(visit)
    if sign_in.provider is None:
        raise PageError(404, "There is no OpenID Connect provider here.")
    wanted = safe_redirect_address(visit.query.get("next", ""))
    return visit.redirect(sign_in.provider.authorization_address(visit.session.id, visit.origin, wanted))


def finish_provider_sign_in(visit: PageRequest) -> Response:
    """Take the answer that the browser brings from the provider."""
    sign_in = _required_sign_in(visit)
    if sign_in.provider is None:
        raise PageError(404, "There is no OpenID Connect provider here.")
    try:
        return visit.redirect(
            safe_redirect_address(sign_in.sign_in_with_provider_answer(visit.session, visit.origin, visit.query))
        )
    except SignInRefusedError as error:
        raise PageError(403, error.message, error.advice) from None


def safe_redirect_address(text: str) -> str:
    """Return *text* if it is an address of this server as browsers read it, else that of the start page."""
    return text if len(text) <= _MAX_WANTED and _OF_THIS_SERVER.fullmatch(text) else "/"


def _sign_in_page(
    visit: PageRequest, sign_in: SignIn, wanted: str, name: str = "", problem: str = "", status: int = 200
) -> Response:
    return visit.render_page(
        "sign_in.html",
        "Sign in",
        http_status=status,
        wanted=wanted,
        name=name,
        problem=problem,
        has_accounts=sign_in.accounts is not None,
        provider=sign_in.provider and sign_in.provider.settings.name,
    )


def _required_sign_in(visit: PageRequest) -> SignIn:
    if visit.console.sign_in is None:
        raise PageError(404, "Nobody needs to sign in here.", "The users of this machine may do everything.")
    return visit.console.sign_in
