"""All addresses of the console, each with what answers and the role that it needs."""

from __future__ import annotations

from crossdock.console import (
    action_and_started_command_pages,
    audit_log_page,
    connections_page,
    effective_config_and_schedule_pages,
    error_code_page,
    imported_files_page,
    migration_pages,
    month_summary_page,
    open_record_search_list_pages,
    over_limit_change_approvals_page,
    record_page,
    records_delivered_by_run_page,
    run_calendar_page,
    run_pages,
    sign_in_pages,
    start_page,
)
from crossdock.console.sign_in.openid_provider import ANSWER_PATH
from crossdock.console.visitors_and_roles import Role
from crossdock.console.web_app import SIGN_IN, Page

PAGES = (
    Page(SIGN_IN, sign_in_pages.show_sign_in, role=None),
    Page(SIGN_IN, sign_in_pages.sign_in_with_password, role=None, is_form=True),
    Page("/sign-out", sign_in_pages.sign_out, Role.VIEWER, is_form=True),
    Page("/sign-in/openid", sign_in_pages.redirect_to_provider, role=None),
    Page(ANSWER_PATH, sign_in_pages.finish_provider_sign_in, role=None),
    Page("/", start_page.show_all_tenants),
    Page("/t/{tenant}", start_page.show_tenant),
    Page("/t/{tenant}/runs", run_pages.show_runs),
    Page("/t/{tenant}/runs/calendar", run_calendar_page.show_calendar),
    Page("/t/{tenant}/runs/{run}", run_pages.show_run),
    Page("/t/{tenant}/runs/{run}/delivered", records_delivered_by_run_page.show_delivered_records),
    Page("/t/{tenant}/month/{month}", month_summary_page.show_month),
    Page("/t/{tenant}/do/{action}", action_and_started_command_pages.show_preview, Role.OPERATOR),
    Page("/t/{tenant}/do/{action}", action_and_started_command_pages.start_action, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/commands", action_and_started_command_pages.show_started_commands, Role.OPERATOR),
    Page("/t/{tenant}/commands/{command}", action_and_started_command_pages.show_started_command, Role.OPERATOR),
    Page("/t/{tenant}/connections", connections_page.show_connections),
    Page("/t/{tenant}/connections/check", connections_page.check_connections, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/connections/subscriptions", connections_page.list_subscriptions, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/migration", migration_pages.show_migration),
    Page("/t/{tenant}/migration/sign-off", migration_pages.show_sign_off_requirements),
    Page("/t/{tenant}/settings", effective_config_and_schedule_pages.show_settings),
    Page("/t/{tenant}/settings/schedule", effective_config_and_schedule_pages.show_schedule),
    Page("/t/{tenant}/records", open_record_search_list_pages.show_counts_or_search),
    Page("/t/{tenant}/records/{state}", open_record_search_list_pages.show_records_in_state),
    Page("/t/{tenant}/record", record_page.show_record),
    Page("/t/{tenant}/record", record_page.show_record_fetched_live, Role.OPERATOR, is_form=True),
    Page("/t/{tenant}/approvals", over_limit_change_approvals_page.show_approvals),
    Page("/t/{tenant}/codes/{code}", error_code_page.show_error_code),
    Page("/t/{tenant}/files", imported_files_page.show_imported_files),
    Page("/t/{tenant}/audit", audit_log_page.show_audit_log),
)
