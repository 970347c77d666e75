"""OAuth 2.0 tokens that a person gave access to (RFC 6749 section 4.1, RFC 7636, RFC 8628), kept in a file.

Many vendors accept each refresh token once and answer with its successor (RFC 9700 section 4.14.2), some revoke all
tokens if one is used twice. So a token is renewed under the lock of its file, which is read again before: what another
process has renewed is used, and a file that is older than the newest tokens is not. The intent is stored before the
request, and the answer before the new token is used.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

import httpx

from crossdock.errors import ConfigError, StateError, UnauthorizedError, UnavailableError
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.http_auth import (
    RENEWED_AT,
    Expired,
    Flow,
    TokenAuth,
    revealed_secret_or_text,
    token_request_of_client,
)
from crossdock.reading.transport.oauth_messages import ClientAuth
from crossdock.state.sidecar_files import folder_owner_and_fence
from crossdock.values import exact_json
from crossdock.values.config_base_types import Secret
from crossdock.values.safe_local_files import (
    create_private_folder,
    open_or_create_private_file,
    open_regular_file,
    raise_if_file_not_replaceable,
    read_regular_file_within_limit,
    read_rest_within_limit,
    replace_file_atomically,
)
from crossdock.values.texts_of_numbers_and_times import json_time_text
from crossdock.values.web_address_checks import check_address_without_query, check_https_or_loopback_address

LOCKED_AT_MOST_S = 120.0  # a renewal is one request, whose time is limited to less
_MAX_BYTES = 1 << 20
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """What the vendor granted last.

    Attributes:
        renew_at: When the access token is renewed, in Unix seconds.
        connected_at: When a person gave access.
        renewing_since: When a renewal was begun whose result is not stored: it is in progress, or was interrupted.
        replaced: How many refresh tokens the vendor has replaced since a person gave access.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    renew_at: int
    connected_at: str
    renewing_since: str | None = None
    replaced: int = 0

    @property
    def generation(self) -> tuple[str, int]:
        """What is less for tokens that the vendor granted before others of the same account."""
        return self.connected_at, self.replaced


class TokenFile:
    """The tokens at *path*. A lock beside it is held while they are renewed.

    The age of the newest tokens is also in a file beside it and, since a backup of the whole folder restores that one
    as well, in the user's folder. So an older file that was put back is recognized. To lose these files is harmless.

    The methods raise UnauthorizedError if the file cannot be used: a request without tokens was not sent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = folder_owner_and_fence.fence_file_in_user_folder(f"tokens {path.resolve()}")
        self._newest = [path.with_name(f"{path.name}.newest"), *kept]

    def read(self) -> StoredTokens | None:
        """Return the stored tokens, or None if there is no file."""
        try:
            with open_regular_file(self.path) as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise self._unusable_file_error("others may read the file of tokens", f"chmod 600 {self.path}")
                document = exact_json.loads(read_rest_within_limit(file, _MAX_BYTES))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable_file_error(f"the file of tokens cannot be read: {error.strerror}") from error
        except ValueError:
            document = None
        if not isinstance(document, dict) or not _is_token_document(document):
            raise self._unusable_file_error(
                "this is not a file of tokens that crossdock has written", "name another file, or remove it"
            )
        return StoredTokens(**document)

    def write(self, tokens: StoredTokens) -> None:
        """Replace the stored tokens. They are on disk when this returns."""
        try:
            replace_file_atomically(self.path, exact_json.dumps(asdict(tokens)))
            _flush_folder(self.path.parent)
        except OSError as error:
            raise self._unusable_file_error(f"the tokens cannot be stored: {error.strerror}") from error
        for path in self._newest:
            if _generation_in(path) != tokens.generation:
                with suppress(OSError):  # it is an extra check
                    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    replace_file_atomically(path, exact_json.dumps(list(tokens.generation)))

    def is_restored_earlier_copy(self, tokens: StoredTokens) -> bool:
        """Return whether newer ones than *tokens* were stored here: the file was replaced by an earlier copy."""
        return any(tokens.generation < (_generation_in(path) or tokens.generation) for path in self._newest)

    def raise_unless_writable(self) -> None:
        """Test whether tokens can be stored."""
        with self.locked():
            try:
                raise_if_file_not_replaceable(self.path)
            except OSError as error:
                raise self._unusable_file_error(f"no tokens could be stored: {error.strerror}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises UnavailableError if others hold it for too long."""
        try:
            create_private_folder(self.path.parent, "tokens are kept in it", "name another file as `tokens`")
            lock = open_or_create_private_file(self.path.with_name(f"{self.path.name}.lock"))
        except OSError as error:
            raise self._unusable_file_error(f"the tokens cannot be locked: {error.strerror}") from error
        except StateError as error:
            raise self._unusable_file_error(error.message, error.hint) from error
        with lock:
            self._wait_for_lock(lock.fileno())
            yield

    def _wait_for_lock(self, descriptor: int) -> None:
        until = time.monotonic() + LOCKED_AT_MOST_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    message = f"another process has been renewing these tokens for {LOCKED_AT_MOST_S:.0f} s"
                    raise UnavailableError(message, where=str(self.path), code="tokens_locked") from None
                time.sleep(_POLL_S)
            else:
                return

    def _unusable_file_error(self, message: str, hint: str | None = None) -> UnauthorizedError:
        return UnauthorizedError(message, where=str(self.path), hint=hint, code="file_unwritable")


def _is_token_document(document: dict[str, object]) -> bool:
    texts, since = ("access_token", "refresh_token", "connected_at"), document.get("renewing_since")
    return (
        document.keys() | {"replaced"} == StoredTokens.__dataclass_fields__.keys()  # earlier versions did not count
        and all(isinstance(document[each], str) for each in texts)
        and isinstance(document["renew_at"], int)
        and isinstance(document.get("replaced", 0), int)
        and (since is None or isinstance(since, str))
    )


def _generation_in(path: Path) -> tuple[str, int] | None:
    """Return the age that *path* has of the newest tokens; None if it is missing or damaged."""
    try:
        match exact_json.loads(read_regular_file_within_limit(path, _MAX_BYTES)):
            case [str() as connected_at, int() as replaced]:
                return connected_at, replaced
    except (OSError, ValueError):
        pass
    return None


def _flush_folder(folder: Path) -> None:
    """Make the new name durable: without this, a power failure may bring back the file before, whose token is used."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_OTHER_REFUSALS = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"})  # of any token
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class AuthorizationCodeAuth(TokenAuth):
    """OAuth 2.0 tokens of an account whose owner gives access once, by ``crossdock connect``.

    Args:
        token_url: May be on another host than the API.
        client_secret: Empty for a public client.
        authorize_url: Where the owner gives access in a browser.
        device_url: Where a code for another device is requested instead (RFC 8628).
        client_auth: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``).
        extra: Further parameters of the address that the owner opens, such as ``access_type``.
        token_extra: Further fields of the request for the first tokens.
        pkce: Prove in this request that it comes from whoever sent the owner to the vendor (RFC 7636).
        redirect_url: Where the vendor sends the browser; by default a free port of this machine.
        tokens: The file of the tokens; by default in a folder beside the state.
        expired: See `ClientCredentialsAuth`.
        scheme: See `ClientCredentialsAuth`.

    Attributes:
        forgives_reuse: Whether the vendor only refuses a refresh token that was used before, and withdraws nothing.

    Raises:
        ConfigError: If not one of *authorize_url* and *device_url* is given, or an address may not get secrets.
    """

    forgives_reuse = False

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        token_url: str,
        client_id: Secret | str,
        client_secret: Secret | str = "",
        *,
        authorize_url: str | None = None,
        device_url: str | None = None,
        scopes: tuple[str, ...] = (),
        client_auth: ClientAuth = "basic",
        extra: Mapping[str, str] | None = None,
        token_extra: Mapping[str, str] | None = None,
        pkce: bool = True,
        redirect_url: str | None = None,
        tokens: Path | None = None,
        expired: Expired | None = None,
        scheme: str | None = None,
    ) -> None:
        super().__init__(token_url, expired, scheme)
        if (authorize_url is None) == (device_url is None):
            raise ConfigError("name authorize_url or device_url, and not both", code="config_invalid")
        self.device_url = (
            None if device_url is None else _checked_url("device", check_address_without_query, device_url)
        )
        self._authorize_url = (
            None
            if authorize_url is None
            else _checked_url("authorization", check_https_or_loopback_address, authorize_url)
        )
        self.redirect_url = redirect_url
        self._client_id, self._client_secret, self._client_auth = client_id, client_secret, client_auth
        self._scope = {"scope": " ".join(scopes)} if scopes else {}
        self._extra, self._token_extra, self._pkce = dict(extra or {}), dict(token_extra or {}), pkce
        self._connection, self._stored = "", None if tokens is None else TokenFile(tokens)

    def keep(self, path: Path | None, connection: str) -> None:
        """Set the name of the connection, and the *path* of its tokens unless the connector chose one."""
        self._connection = connection
        if self._stored is None and path is not None:
            self._stored = TokenFile(path)

    @property
    def file(self) -> TokenFile:
        if self._stored is None:
            raise UnauthorizedError(
                "this connection has no file for its tokens", hint="name one: tokens=PATH", code="consent_missing"
            )
        return self._stored

    # ---- requests

    def authorization_address(self, redirect_url: str, state: str, verifier: str) -> str:
        """Return the address at which the owner gives access."""
        assert self._authorize_url is not None
        asked = {
            "response_type": "code",
            "client_id": revealed_secret_or_text(self._client_id),
            "redirect_uri": redirect_url,
        }
        asked |= self._scope | {"state": state}
        if self._pkce:
            asked |= {"code_challenge": oauth_messages.pkce_challenge(verifier), "code_challenge_method": "S256"}
        return f"{self._authorize_url}{'&' if '?' in self._authorize_url else '?'}{urlencode(self._extra | asked)}"

    def code_request(self, code: str, redirect_url: str, verifier: str) -> httpx.Request:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_url}
        return self._build_client_request(
            form | ({"code_verifier": verifier} if self._pkce else {}) | self._token_extra
        )

    def device_request(self) -> httpx.Request:
        assert self.device_url is not None
        return self._build_client_request(self._scope | self._extra, self.device_url)

    def device_token_request(self, device_code: str) -> httpx.Request:
        return self._build_client_request({"grant_type": DEVICE_GRANT, "device_code": device_code} | self._token_extra)

    def token_request(self) -> httpx.Request:
        return self._build_client_request(
            {"grant_type": "refresh_token", "refresh_token": self._read_usable_tokens().refresh_token}
        )

    def _build_client_request(self, form: Mapping[str, str], url: str | None = None) -> httpx.Request:
        client_id, secret = revealed_secret_or_text(self._client_id), revealed_secret_or_text(self._client_secret)
        return token_request_of_client(url or self._token_url, form, client_id, secret, self._client_auth)

    # ---- tokens

    def prepare(self) -> None:
        """Raise UnauthorizedError or ConfigError if tokens could not be requested or stored, before anybody agrees."""
        _ = revealed_secret_or_text(self._client_id), revealed_secret_or_text(self._client_secret)
        self.file.raise_unless_writable()

    def store(self, response: httpx.Response) -> None:
        """Store the first tokens, in place of earlier ones. Raises UnauthorizedError if the answer has none."""
        token, members = self._token_from_response(response), oauth_messages.json_object_or_empty(response.content)
        if not oauth_messages.is_valid_refresh_token(members.get("refresh_token")):
            message = "the vendor gave no refresh token, so that access would soon end"
            hint = "request it: many vendors want a scope such as offline_access, or a parameter in `extra`"
            raise UnauthorizedError(message, where=self._token_url, hint=hint, code="token_refused")
        now = self.clock.now()
        renew_at = self._next_renewal_time(now.timestamp(), members)
        with self.file.locked():
            self.file.write(StoredTokens(token, str(members["refresh_token"]), renew_at, json_time_text(now)))

    def status(self) -> str:
        """Return since when the account is connected. Raises UnauthorizedError if it is not."""
        stored = self._read_usable_tokens()
        pending = f"; a renewal of {stored.renewing_since} was not finished" if stored.renewing_since else ""
        return f"connected since {stored.connected_at}{pending}"

    def _read_usable_tokens(self) -> StoredTokens:
        stored = self.file.read()
        if stored is None:
            raise UnauthorizedError(
                "is not connected: nobody gave access yet",
                where=self._connection_name,
                hint=self._reconnect_hint,
                code="consent_missing",
            )
        if not self.forgives_reuse and self.file.is_restored_earlier_copy(stored):
            message = "the file of tokens is an earlier copy: its refresh token was used since, and is not sent again"
            raise UnauthorizedError(
                message, where=self._connection_name, hint=self._reconnect_hint, code="tokens_outdated"
            )
        self._require_stored_refresh_token(stored)
        return stored

    def _require_stored_refresh_token(self, stored: StoredTokens) -> None:
        if not stored.refresh_token:
            message = "the vendor's last refresh token has characters that none may have (RFC 6749), so none is left"
            raise UnauthorizedError(
                message, where=self._connection_name, hint=self._reconnect_hint, code="token_refused"
            )

    def _renew(self) -> Flow:
        with self.file.locked():
            stored = self._read_usable_tokens()
            left_s = stored.renew_at - self.clock.now().timestamp()
            if stored.access_token != self._token and left_s > 0:  # another process has renewed it, or an earlier one
                self._token = stored.access_token
                self._renew_at = self.clock.monotonic() + min(left_s, oauth_messages.MAX_LIFE_S)
                return
            self.refused_before.raise_if_refused(stored.refresh_token, self.clock)
            yield from self._renew_by_refresh_token(stored)

    def _renew_by_refresh_token(self, stored: StoredTokens) -> Flow:
        now, asked_at = self.clock.now(), self.clock.monotonic()
        self.file.write(replace(stored, renewing_since=stored.renewing_since or json_time_text(now)))
        response = yield self.token_request()
        status, members = response.status_code, oauth_messages.json_object_or_empty(response.content)
        says_error = status < 300 and "error" in members and "access_token" not in members  # as some do, such as GitHub
        with self.refused_before.remembering_refusal(stored.refresh_token, self.clock):
            if 400 <= status < 500 or says_error:
                self.file.write(stored)  # this request renewed nothing
                self._raise_refusal_unless_of_client(stored, response, members)
            granted = _with_new_refresh_token(stored, members if 200 <= status < 300 else {})
            try:
                token = self._token_from_response(response)
            except (UnauthorizedError, UnavailableError):
                if granted.refresh_token != stored.refresh_token:  # the earlier one is used, whatever else was granted
                    self.file.write(granted)
                raise
        renew_at = self._next_renewal_time(now.timestamp(), members)
        self.file.write(replace(granted, access_token=token, renew_at=renew_at))
        self._require_stored_refresh_token(granted)
        self._token = token
        self._renew_at = asked_at + renew_at - now.timestamp()

    def _next_renewal_time(self, now: float, members: Mapping[str, object]) -> int:
        return int(now + RENEWED_AT * oauth_messages.token_life_s(members.get("expires_in")))

    def is_passing(self, response: httpx.Response, members: Mapping[str, object]) -> bool:
        """Return whether an answer without tokens says nothing about the access, so that a later one may have them.

        A refusal of the vendor is JSON (RFC 6749 section 5.2), and others of 400 or 401, such as pages, may be one. So
        the rest comes from what is in front of the vendor, such as a firewall.
        """
        status = response.status_code
        is_of_vendor = status in {400, 401} or "error" in members or bool(self.refused(response))
        return (
            status == 409
            or oauth_messages.is_temporary_failure(status, members)
            or (status >= 400 and not is_of_vendor)
        )

    def _raise_refusal_unless_of_client(
        self, stored: StoredTokens, response: httpx.Response, members: Mapping[str, object]
    ) -> None:
        """Raise the error for a refusal, unless it is one of the client, which any kind of token may get."""
        if self.is_passing(response, members):
            advice = f"if this persists, check the token URL, or {self._reconnect_hint}"
            message = f"no token obtained: HTTP {response.status_code}, which says nothing about the access; {advice}"
            raise UnavailableError(message, where=self._connection_name, code="token_unavailable")
        if oauth_messages.oauth_error_code(members) not in _OTHER_REFUSALS:
            raise self._refusal_error(stored, response, members.get("error"))

    def _refusal_error(self, stored: StoredTokens, response: httpx.Response, code: object) -> UnauthorizedError:
        reason = oauth_messages.token_refusal_text(response.status_code, code)
        if code != "invalid_grant" and not self.refused(response):
            message = f"the vendor renewed no access, and does not say in the words of a standard why: {reason}"
            return UnauthorizedError(
                message,
                where=self._connection_name,
                hint=f"if this stays so, {self._reconnect_hint}",
                code="token_refused",
            )
        said = self.refused(response) or (
            f"a renewal that began at {stored.renewing_since} was interrupted before its answer was stored, and the"
            " vendor counts the token as used"
            if stored.renewing_since
            else "access was withdrawn, was not used for too long, or an older file of tokens was restored"
        )
        message = f"the vendor accepts the refresh token no more: {reason}: {said}"
        return UnauthorizedError(message, where=self._connection_name, hint=self._reconnect_hint, code="token_refused")

    @property
    def _connection_name(self) -> str:
        return f"connections.{self._connection}" if self._connection else str(self.file.path)

    @property
    def _reconnect_hint(self) -> str:
        return f"give access: crossdock connect {self._connection or 'CONNECTION'}"


def _with_new_refresh_token(stored: StoredTokens, members: Mapping[str, object]) -> StoredTokens:
    """Return *stored* with the refresh token of an answer, still without its access token.

    Without one the earlier stays valid. One that cannot be used leaves none: this answer has used the earlier one up.
    """
    given = members.get("refresh_token") or stored.refresh_token
    following = str(given) if oauth_messages.is_valid_refresh_token(given) else ""
    replaced = stored.replaced + (following != stored.refresh_token)
    return StoredTokens("", following, 0, stored.connected_at, replaced=replaced)


def _checked_url(name: str, check: Callable[[str], str], url: str) -> str:
    try:
        return check(url)
    except ValueError as error:
        raise ConfigError(f"the {name} URL {error}", code="address_invalid") from None
