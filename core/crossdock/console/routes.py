"""All addresses of the console, each with what answers and the role that it needs."""

from __future__ import annotations

from crossdock.console import (
    action_pages,
    approvals,
    audit,
    code_page,
    connections,
    delivered,
    imported_files,
    migration,
    month_page,
    record_page,
    records,
    run_calendar,
    runs,
    settings,
    sign_in_pages,
    today,
)
from crossdock.console.app import SIGN_IN, Page
from crossdock.console.people import Role
from crossdock.console.sign_in.openid_provider import ANSWER_PATH

PAGES = (
    Page(SIGN_IN, sign_in_pages.asked, role=None),
    Page(SIGN_IN, sign_in_pages.by_password, role=None, is_form=True),
    Page("/sign-out", sign_in_pages.out, Role.VIEWER, is_form=True),
    Page("/sign-in/openid", sign_in_pages.to_provider, role=None),
    Page(ANSWER_PATH, sign_in_pages.from_provider, role=None),
    Page("/", today.of_all),
    Page("/t/{tenant}", today.of_tenant),
    Page("/t/{tenant}/runs", runs.listed),
    Page("/t/{tenant}/runs/calendar", run_calendar.calendar),
    Page("/t/{tenant}/runs/{run}", runs.one),
    Page("/t/{tenant}/runs/{run}/delivered", delivered.listed),
    Page("/t/{tenant}/month/{month}", month_page.shown),
    Page("/t/{tenant}/do/{action}", action_pages.preview, Role.OPERATOR),
    Page("/t/{tenant}/do/{action}", action_pages.carry_out, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/commands", action_pages.listed, Role.OPERATOR),
    Page("/t/{tenant}/commands/{command}", action_pages.one, Role.OPERATOR),
    Page("/t/{tenant}/connections", connections.shown),
    Page("/t/{tenant}/connections/check", connections.checked, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/connections/subscriptions", connections.subscribed, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/migration", migration.shown),
    Page("/t/{tenant}/migration/sign-off", migration.sign_off),
    Page("/t/{tenant}/settings", settings.shown),
    Page("/t/{tenant}/settings/schedule", settings.schedule),
    Page("/t/{tenant}/records", records.overview),
    Page("/t/{tenant}/records/{state}", records.listed),
    Page("/t/{tenant}/record", record_page.one),
    Page("/t/{tenant}/record", record_page.asked, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/codes/{code}", code_page.shown),
    Page("/t/{tenant}/approvals", approvals.listed),
    Page("/t/{tenant}/files", imported_files.listed),
    Page("/t/{tenant}/audit", audit.listed),
)
