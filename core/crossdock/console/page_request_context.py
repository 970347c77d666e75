"""One request for a page: who asks, of which tenant, what all pages use, and how the page is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct, field
from starlette.responses import HTMLResponse, RedirectResponse, Response

from crossdock.config.project.project import Project
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.console import page_rendering
from crossdock.console.sign_in.sign_in_methods_and_sessions import SignIn
from crossdock.console.started_commands import StartedCommands
from crossdock.console.tenant_configs_and_states import Tenant, Tenants
from crossdock.console.tenant_overviews import TenantOverviewCache
from crossdock.console.visitors_and_roles import Person, Role
from crossdock.errors import CrossdockError, add_code_to_first_line, text_with_code
from crossdock.state import Transaction
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.html_templates import EscapedOnlyText
from crossdock.values.serving.cross_site_protection import Session, SubmittedFields

T = TypeVar("T")
WAIT_S = 0.1  # before a page shows what is known
FRESH_S = 5.0
SHARE = 20  # a reading is shown for at least this many times as long as it took, so that it burdens no run


class _Known(Struct):
    found: Any = None
    error: CrossdockError | None = None
    fresh_until: float = 0.0
    thread: threading.Thread | None = None


class CachedBackgroundReads:
    """The last result of each reading, by its name. Any thread may use it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], _Known] = {}

    def read_or_cached_if_slow(
        self, name: tuple[str, ...], read: Callable[[], T], *, wait_s: float = WAIT_S
    ) -> T | None:
        """Return the result of *read*, of an earlier call if a new one takes longer than *wait_s*; None at first.

        Raises the CrossdockError of the last call.
        """
        with self._lock:
            known = self._known.setdefault(name, _Known())
            if known.thread is None and self._clock.monotonic() >= known.fresh_until:
                known.thread = threading.Thread(
                    target=self._read_and_cache, args=(known, read), name="reading", daemon=True
                )
                known.thread.start()
            thread = known.thread
        if thread is not None:
            thread.join(wait_s)
        with self._lock:
            if known.error is not None:
                raise known.error
            found: T | None = known.found
            return found

    def wait_for_reads_in_progress(self) -> None:
        """Wait for the readings in progress: one that is cut off at the end of the process can make it crash."""
        with self._lock:
            threads = [each.thread for each in self._known.values() if each.thread is not None]
        for thread in threads:
            thread.join()

    def _read_and_cache(self, known: _Known, read: Callable[[], Any]) -> None:
        began = self._clock.monotonic()
        found, failed = None, None
        try:
            found = read()
        except CrossdockError as error:
            failed = error
        finally:
            with self._lock:
                ended = self._clock.monotonic()
                known.found, known.error, known.thread = found, failed, None
                known.fresh_until = ended + max(FRESH_S, SHARE * (ended - began))


def parse_whole_number_or_none(text: str | None) -> int | None:
    """Return the number that a part of an address has; None if it has none, or one that no database stores."""
    return int(text) if text and text.isdecimal() and len(text) < 18 else None


class Console(Struct, frozen=True):
    """What all pages use."""

    tenants: Tenants
    overviews: TenantOverviewCache
    clock: Clock
    background_readings: CachedBackgroundReads = field(default_factory=CachedBackgroundReads)
    sign_in: SignIn | None = None  # None: the users of this machine need none


class PageError(Exception):
    """A page cannot be shown: HTTP *status*, what happened, and what to do."""

    def __init__(self, status: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.advice = status, message, advice


def parse_business_date(text: str) -> date:
    """Return the date of a parameter. Raises PageError."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise PageError(400, f"{text} is not a date such as 2026-11-24.") from None
    if not 1990 <= found.year < 2200:
        raise PageError(400, f"{text} is not a date of this time.")
    return found


class PageRequest(Struct, frozen=True, kw_only=True):
    """One request.

    Attributes:
        tenant: The tenant in the address; None for pages of all tenants.
        path_params: The other variable parts of the address.
        query: The first value of each parameter.
        form: The fields of a form that was sent, whose token is valid; None for a page. What it is about is in `query`,
            because browsers change line breaks in fields.
        session: The browser's.
        token: For the forms of the page.
        address: Where the request came from.
        origin: Scheme and host of this server as the browser names it.
        by_other_site: Whether a page of another site has opened this one, such as a ticket with its address.
    """

    console: Console
    person: Person
    tenant: Tenant | None
    path: str
    path_params: Mapping[str, str]
    query: Mapping[str, str]
    form: SubmittedFields | None
    session: Session
    token: str
    address: str
    origin: str
    by_other_site: bool
    now: datetime

    @property
    def required_tenant(self) -> Tenant:
        assert self.tenant is not None
        return self.tenant

    @property
    def may_see_personal_data(self) -> bool:
        return self.has_role(Role.OPERATOR)

    def has_role(self, role: Role) -> bool:
        return self.person.has_role(role, None if self.tenant is None else self.tenant.name)

    @contextmanager
    def read_transaction(self) -> Iterator[Transaction]:
        with self.console.tenants.read_transaction(self.required_tenant) as tx:
            yield tx

    def project(self) -> Project:
        return self.required_tenant.project()

    def parameter(self, name: str) -> str:
        """Return a parameter of the address, empty if it is missing."""
        return self.query.get(name, "").strip()

    def project_or_problem(self) -> tuple[Project | None, str]:
        """Return the config, or why it cannot be loaded."""
        try:
            return self.project(), ""
        except CrossdockError as error:
            return None, text_with_code(error)

    def jobs_or_problem(self) -> tuple[Mapping[str, JobConfig], str]:
        """Return the jobs of the config, or none and a sentence that says why it cannot be loaded."""
        try:
            return self.project().jobs, ""
        except CrossdockError as error:
            return {}, f"The config cannot be loaded: {add_code_to_first_line(error.message, error.code)}"

    def started_commands(self) -> StartedCommands:
        project = self.project()
        return StartedCommands(project.folder_beside_spool("console"), project.pinned_tenant)

    def link(self, *parts: object, **query: object) -> EscapedOnlyText:
        """Return the address of a page of this tenant; parameters that are None or empty are left out."""
        return tenant_page_address(self.required_tenant.name, *parts, **query)

    def render_page(
        self, template: str, title: str, /, http_status: int = 200, *, refreshes: int = 0, **values: object
    ) -> Response:
        """Show the page of *template* with *values*, and what all pages have.

        The browser renews a page that *refreshes* after so many seconds, until one comes that does not.
        """
        page = page_rendering.render(template, **self._shared_values(title), **values, refreshes=refreshes)
        return HTMLResponse(page, http_status)

    def redirect(self, address: str) -> Response:
        """Answer a form: the browser requests the page at *address*, and loading it again sends nothing twice."""
        return RedirectResponse(address, 303)

    def _shared_values(self, title: str) -> Mapping[str, object]:
        return {
            "layout": "console.html",
            "assets": page_rendering.asset_addresses(),
            "visit": self,
            "page_title": title,
            "navigation": list(self._navigation()),
            "may_operate": self.has_role(Role.OPERATOR),
            "may_administer": self.has_role(Role.ADMINISTRATOR),
        }

    def _navigation(self) -> Iterator[tuple[str, str, bool]]:
        """Yield the name and address of each page of the menu, and whether it is this one."""
        if self.tenant is None:
            yield "Today", "/", self.path == "/"
            return
        part = self.path.removeprefix(self.link()).lstrip("/").partition("/")[0]
        for name, parts, role in MENU:
            if self.has_role(role):
                yield name, self.link(*filter(None, parts[:1])), part in parts


MENU: Sequence[tuple[str, tuple[str, ...], Role]] = (
    ("Today", ("",), Role.VIEWER),
    ("Runs", ("runs", "month"), Role.VIEWER),
    ("Records", ("records", "record", "files", "approvals"), Role.VIEWER),
    ("Connections", ("connections",), Role.VIEWER),
    ("Migration", ("migration",), Role.VIEWER),
    ("Settings", ("settings",), Role.VIEWER),
    ("Actions", ("commands", "do"), Role.OPERATOR),
    ("Audit", ("audit",), Role.VIEWER),
)
"""The name of each page in the menu, the first parts of the addresses below it, and the role that it needs."""
Handler = Callable[[PageRequest], Response]


def tenant_page_address(tenant: str, *parts: object, **query: object) -> EscapedOnlyText:
    return page_address("t", tenant, *parts, **query)


def page_address(*parts: object, **query: object) -> EscapedOnlyText:
    """Return the address of a page from the parts of its path; parameters that are None or empty are left out."""
    path = "/".join(quote(str(each), safe="") for each in parts)
    given = {name: str(value) for name, value in query.items() if value not in {None, ""}}
    return EscapedOnlyText(f"/{path}" + (f"?{urlencode(given)}" if given else ""))


_AT_ONCE = threading.BoundedSemaphore(3)
"""Partners may be slow to answer, and what waits for them must leave threads for other pages."""


@contextmanager
def raise_if_too_many_partner_requests() -> Iterator[None]:
    """Send requests in the block. Raises PageError if others do so already."""
    if not _AT_ONCE.acquire(blocking=False):
        raise PageError(503, "Other requests to partners are under way.", "Try again once they have ended.")
    try:
        yield
    finally:
        _AT_ONCE.release()
