"""Acceptance passes a correct connector, and finds one that loses records when it is killed."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.integration.testing import billing_connector

from crossdock.testing.acceptance import SyncAcceptance

pytestmark = pytest.mark.usefixtures("commands_are_forked")


@pytest.mark.nightly
class TestBilling(SyncAcceptance):
    """Acceptance itself, inherited as authors do: customers, and invoices of which some are equal."""

    connector = billing_connector.CONNECTOR
    settings = {"base_url": "https://billing.example", "token": "env:BILLING_TOKEN", "folder": "."}
    environment = {"BILLING_TOKEN": billing_connector.TOKEN}

    def network(self) -> httpx.MockTransport:
        return httpx.MockTransport(billing_connector.billing)


class _OwnCursor(TestBilling):
    connector = billing_connector.WITH_OWN_CURSOR


class _Empty(TestBilling):
    def network(self) -> httpx.MockTransport:
        return httpx.MockTransport(lambda request: httpx.Response(200, json={request.url.path[1:]: []}))


class _NoInvoices(TestBilling):
    def network(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            is_empty = request.url.path == "/invoices"
            return httpx.Response(200, json={"invoices": []}) if is_empty else billing_connector.billing(request)

        return httpx.MockTransport(answer)


class _Down(TestBilling):
    def network(self) -> httpx.MockTransport:
        return httpx.MockTransport(lambda _: httpx.Response(404))


class _Shown(TestBilling):
    environment = {"BILLING_TOKEN": billing_connector.TOKEN, "SHOWN": "billing.customers"}


def failure(case: SyncAcceptance) -> str:
    with pytest.raises(AssertionError) as failed:
        case.test_each_record_is_delivered_once_in_spite_of_faults_and_kills()
    return str(failed.value)


@pytest.mark.nightly
def test_records_that_a_kill_loses_are_found() -> None:
    """The connector notes what it has read before it is delivered, so that the next run does not read it."""
    assert "missing, such as create invoice" in failure(_OwnCursor())


def test_an_example_that_cannot_be_delivered_is_refused() -> None:
    """An empty snapshot, or a source that fails, proves nothing; the error has the command's own words."""
    assert "exit code 4:\ncrossdock: billing.customers: " in failure(_Empty())
    assert "exit code 3:\ncrossdock: billing.customers: " in failure(_Down())


def test_a_stream_without_records_is_refused() -> None:
    """Its syncs prove nothing."""
    assert failure(_NoInvoices()).startswith("billing.invoices: pull yields no record today")


def test_a_secret_in_the_output_of_a_command_is_found() -> None:
    """Here it is a word that every report has."""
    assert failure(_Shown()).startswith("the output of a sync that nothing disturbs contains the secret SHOWN")


def test_a_config_without_its_files_is_refused(tmp_path: Path) -> None:
    """The error is that of the config's loader."""
    case = SyncAcceptance()
    case.config = tmp_path / "missing.yaml"
    with pytest.raises(Exception, match="missing.yaml"):
        case.test_each_record_is_delivered_once_in_spite_of_faults_and_kills()
