"""The service: what it logs, notifies and shows when runs fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families
from tests.conftest import PIN
from tests.integration.notifications.receivers import Receiver, Relay, email, relaying
from tests.integration.scheduler.scheduled_runs_race import BEGIN, Inline, KilledError, job, project
from tests.servers import served
from tests.waiting import eventually

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project.project import Project, load
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.errors import StateBusyError
from crossdock.runs import stream_input, sync_and_replay
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.run_report import Report
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.webhook_receiver_and_writer import RefusedWebhookCounts
from crossdock.services.inbox.webhook_record_delivery import InboxWorker
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler import run_events_and_pending_notices
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler, WebhookReception
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.services.scheduler.stderr_log import LOGGER
from crossdock.state import DueRun, NamedRecord, RecordFilter, create_or_upgrade_state, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

Before = Callable[[], object]
ALL = RecordFilter()
WHEN = ["failed", "degraded", "recovered", "late"]
CONFIG = """\
platform: {{base_url: "{base_url}", tenant: {tenant}, auth: {{kind: api_key, token: env:KEY}}}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: .
    settle_s: 0
    streams:
      products:
        mode: append
        files: "*.csv"
        format: {{kind: delimited, delimiter: ";"}}
        key: [SKU]
        resource: product
        map: {{sku: SKU, name: SKU, unitPrice: {{from: PRICE, as: decimal}}}}
"""

TWO_CONNECTIONS = f"""\
{CONFIG}\
  shop:
    kind: folder_warehouse
    path: .
    settle_s: 0
    streams:
      customers:
        mode: append
        files: "*.txt"
        format: {{{{kind: delimited, delimiter: ";"}}}}
        key: [NUM]
        resource: customer
        map: {{{{name: NUM}}}}
"""


class ServiceCase:
    """A service with one job that is due every second, on a manual clock."""

    def __init__(
        self,
        folder: Path,
        receiver: Receiver,
        caplog: pytest.LogCaptureFixture,
        executor: Executor | None = None,
        *,
        config: Path | None = None,
        jobs: dict[str, JobConfig] | None = None,
    ) -> None:
        self.folder, self._caplog = folder, caplog
        self.clock = ManualClock(BEGIN - timedelta(milliseconds=5))  # a run starts so soon after it is due
        self.url = parse_database_url("sqlite:///state.db", folder)
        create_or_upgrade_state(self.url, PIN)
        jobs = jobs or {"nightly": job(schedule={"every": "1s", "catch_up": "latest"})}
        self.project: Project = project(self.url, folder, jobs)
        if config is not None:
            self.project = structs.replace(load(config), jobs=jobs)
        notify = NotifyConfig.model_validate({"webhook": {"url": receiver.url}, "when": WHEN})
        self.project = structs.replace(self.project, notify=notify)
        self.notifier, self._executor = Notifier(notify, self.clock), executor or Inline()
        self.restart()

    def restart(self, *, receives_webhooks: bool = False) -> None:
        """Another process takes the place of the one before."""
        self.service_metrics, self.interrupt = Metrics(self.clock), threading.Event()
        self.service = MonitoredScheduler(
            self.project,
            self.clock,
            self.interrupt,
            self.service_metrics,
            notifier=self.notifier,
            trace=lambda _: None,
            workers=WorkerPool(self._executor),
            webhooks=self._reception() if receives_webhooks else None,
        )

    def _reception(self) -> WebhookReception:
        worker = InboxWorker(self.clock, SilentProgress, self.interrupt, lambda *_: None)
        return WebhookReception(worker, RefusedWebhookCounts())

    def is_killed(self) -> None:
        """Its process ends in the next look, and another one is started."""
        with pytest.raises(KilledError):
            self.service.report_ended_and_start_due()
        self.service.close()
        self.restart()

    def looks(self, *before: Before) -> None:
        """Let it look, and again after each of these was done and a second has passed; then close it."""
        with closing(self.service):
            self.service.report_ended_and_start_due()
            for step in before:
                step()
                self.clock.advance(1)
                self.service.report_ended_and_start_due()

    @property
    def log(self) -> list[str]:
        """The logged messages."""
        return self._caplog.messages

    def lose_state(self) -> None:
        (self.folder / "state.db").rename(self.folder / "away.db")

    def find_state(self) -> None:
        (self.folder / "away.db").rename(self.folder / "state.db")

    @property
    def metrics(self) -> dict[str, float]:
        families = text_string_to_metric_families(self.service_metrics.prometheus_exposition()[0].decode())
        return {sample.name: sample.value for family in families for sample in family.samples if sample.labels}


@pytest.fixture
def config_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of one warehouse in this folder, and its credentials."""
    monkeypatch.setenv("KEY", "k")
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.format(base_url=PIN.base_url, tenant=PIN.tenant), encoding="utf-8")
    return path


@pytest.fixture
def receiver() -> Any:
    with served(Receiver()) as receiver:
        yield receiver


@pytest.fixture
def case(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> ServiceCase:
    monkeypatch.setenv("KEY", "k")
    caplog.set_level(logging.INFO, LOGGER.name)
    return ServiceCase(tmp_path, receiver, caplog)


def notifications(receiver: Receiver) -> list[tuple[str, str]]:
    """The type and the error of each notification."""
    notices = [exact_json.loads(post.body) for post in receiver.posts]
    return [(notice["type"], notice["data"]["error"]) for notice in notices]


def nothing() -> None:
    """Change nothing."""


def test_a_scheduler_that_waits_shows_no_run(case: ServiceCase) -> None:
    """A second scheduler on the state neither logs that a run started, nor counts itself as running."""
    with closing(case.project.open_state()) as state, state.hold_run_lease("another"):
        case.looks(nothing, nothing, nothing)
    assert case.metrics.get("crossdock_running", 0) == 0
    assert [line for line in case.log if "started" in line] == []


def test_people_are_told_of_a_run_that_waits_for_a_job_that_cannot_start(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, five minutes after it was due, with the job that it begins after; the failed start itself is no delay."""
    original = sync_and_replay.run_scheduled

    def run(session: Any, due_run: Any, **more: Any) -> Report | None:
        if due_run.job == "first":
            raise ZeroDivisionError
        return original(session, due_run, **more)

    monkeypatch.setattr(sync_and_replay, "run_scheduled", run)
    schedule = {"at": "14:00", "catch_up": "latest"}
    jobs = {"first": job("UTC", schedule=schedule), "second": job("UTC", schedule=schedule, after=["first"])}
    case = ServiceCase(tmp_path, receiver, caplog, jobs=jobs)
    with closing(case.service):
        for _ in range(5):
            case.service.report_ended_and_start_due()
            case.clock.advance(3600)
    told = [exact_json.loads(post.body) for post in receiver.posts]
    assert [(each["type"], each["data"]["job"]) for each in told] == [
        ("night.failed", "first"),
        ("night.late", "second"),
    ]
    assert told[1]["data"]["reason"] == "it begins after first, which has not ended for 2025-03-01"


def test_records_of_webhooks_that_cannot_be_worked_on_are_failing(
    tmp_path: Path,
    config_path: Path,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service is not ready while the secret of the platform is gone, and logs it once."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path)
    case.project = structs.replace(case.project, jobs={})
    with closing(case.project.open_state()) as state, state.begin() as tx:
        tx.inbox.schedule_fetch_of_records([NamedRecord("wms.products", "P1", 1)], at=case.clock.now())
    case.restart(receives_webhooks=True)
    monkeypatch.setattr(webhook_record_delivery, "IDLE_S", 0.0)
    monkeypatch.delenv("KEY")
    shown = list[tuple[bool, str]]()
    with closing(case.service):
        for secret in (None, None, "k"):
            if secret is not None:
                monkeypatch.setenv("KEY", secret)
            case.service.report_ended_and_start_due()
            case.service.report_refused_and_delayed_webhooks()
            shown.append(case.service_metrics.readiness())
            exposed, _ = case.service_metrics.prometheus_exposition()
            assert b'crossdock_inbox_records{state="failing"} 1.0' in exposed
    assert not shown[0][0]
    assert shown[0][1].startswith("not ready; inbox: ")
    assert shown[1:] == [shown[0], (True, "ready")]
    assert len([line for line in case.log if "records are not delivered now" in line]) == 1


def test_a_lost_state_is_reported_once(case: ServiceCase, receiver: Receiver) -> None:
    """When a run is due and the state cannot be used, one notification is sent."""
    case.looks(nothing, case.lose_state, nothing, nothing, case.find_state, nothing)
    assert any("there is no state here" in line for line in case.log)
    kinds = [kind for kind, _ in notifications(receiver)]
    assert kinds.count("night.failed") == 1


def test_an_unexpected_error_in_a_run_does_not_end_the_service(
    case: ServiceCase, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run fails and is reported, and the next one starts."""
    original = sync_and_replay.run_scheduled

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sync_and_replay, "run_scheduled", broken)
    case.looks(nothing, nothing, lambda: monkeypatch.setattr(sync_and_replay, "run_scheduled", original))
    assert [line for line in case.log if "failed" in line]
    assert notifications(receiver)[0][0] == "night.failed"
    assert case.log[-1].endswith("done after 0.0 s")


def test_a_run_that_hangs_is_reported_at_its_deadline(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, while it runs."""
    monkeypatch.setenv("KEY", "k")
    monkeypatch.setattr(run_events_and_pending_notices, "WATCH_S", 0.01)
    case = ServiceCase(
        tmp_path, receiver, caplog, jobs={"nightly": job("UTC", schedule={"at": "12:00"}, done_by="13:00")}
    )
    original = sync_and_replay.run_scheduled

    def hanging(*args: Any, **settings: Any) -> Report | None:
        case.clock.advance(3600)
        eventually(lambda: bool(receiver.posts))
        return original(*args, **settings)

    monkeypatch.setattr(sync_and_replay, "run_scheduled", hanging)
    case.looks(nothing, nothing)
    (notice,) = (exact_json.loads(post.body) for post in receiver.posts)
    assert (notice["type"], notice["data"]["expected_end"]) == ("night.late", None)
    assert "Expected end: unknown" in notice["text"]
    assert [line for line in case.log if "13:00" in line] == ["nightly for 2025-03-01: has not ended by 13:00"]


def test_a_run_that_cannot_start_is_reported(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once after five minutes in which another process has the state, and the deadline once, before it starts."""
    caplog.set_level(logging.INFO, LOGGER.name)
    monkeypatch.setenv("KEY", "k")
    noon = {"at": "12:00"}
    jobs = {"nightly": job("UTC", schedule=noon, done_by="12:02"), "other": job("UTC", schedule=noon)}
    case = ServiceCase(tmp_path, receiver, caplog, jobs=jobs)
    with closing(case.project.open_state()) as state, state.hold_run_lease("another"):
        case.service.report_ended_and_start_due()
        for _ in range(4):
            case.clock.advance(110)
            case.service.report_ended_and_start_due()
    case.looks(nothing, nothing)
    notices = [exact_json.loads(post.body) for post in receiver.posts]
    assert [(each["type"], each["data"]["job"]) for each in notices] == [
        ("night.late", "nightly"),
        ("night.late", "other"),
    ]
    assert "another" in notices[1]["data"]["reason"]
    assert sum("done after" in line or "failed after" in line for line in case.log) == 2


def test_people_are_told_once_of_the_same_open_records(
    tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """When a job becomes degraded, when more records are open, and when none is any more; not at each run."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path)

    def put(name: str) -> None:
        (tmp_path / name).write_text("SKU;PRICE\nP1;x\n" if name == "1.csv" else "SKU;PRICE\nP2;y\n", encoding="utf-8")

    def drop() -> None:
        with closing(case.project.open_state()) as state, state.begin() as tx:
            tx.dead_letters.mark_dropped(
                "wms.products", [each.identity.key_hash for each in tx.dead_letters.rejected_matching(ALL)]
            )

    case.looks(nothing, lambda: put("1.csv"), nothing, nothing, lambda: put("2.csv"), nothing, drop, nothing)
    notices = [exact_json.loads(post.body) for post in receiver.posts]
    assert [(notice["type"], notice["data"]["open"]["rejected"]) for notice in notices] == [
        ("night.degraded", 1),
        ("night.degraded", 2),
        ("night.recovered", 0),
    ]
    assert "Open records: 2 rejected" in notices[1]["text"]
    assert sum("degraded after 0.0 s: open: " in line for line in case.log) == 5
    assert case.metrics["crossdock_open_records"] == 0


@pytest.mark.nightly
def test_people_are_told_later_of_what_they_could_not_be_told(
    tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """A channel that fails after the first degraded run gets the message after the next one, once."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path)
    receiver.statuses = [503, 503, 204]

    def put() -> None:
        (tmp_path / "1.csv").write_text("SKU;PRICE\nP1;x\n", encoding="utf-8")

    case.looks(nothing, put, nothing, nothing, nothing)
    notices = [exact_json.loads(post.body) for post in receiver.posts]
    assert [notice["type"] for notice in notices] == ["night.degraded"] * 3
    runs = [notice["data"]["run"] for notice in notices]
    assert runs[0] == runs[1] < runs[2]


def test_a_run_says_that_the_config_has_changed_since_the_service_read_it(
    tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes back what a sync with the new mapping has delivered, until somebody has the service read the config."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path)

    def edit() -> None:
        config_path.write_text(f"{config_path.read_text()}# another name of the product\n", encoding="utf-8")

    case.looks(nothing, edit, nothing)
    with case.project.read_state() as tx:
        said = [[each.message for each in tx.runs.messages(run.id)] for run in reversed(tx.runs.listed(limit=9))]
    assert ["the config was changed" in "".join(texts) for texts in said] == [False, True, True]


def test_a_recipient_who_is_gone_does_not_have_the_others_told_again(
    tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """The mail server has accepted the message for them; each message is logged as not sent to one, once."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path, jobs=NOON)
    with relaying(Relay({"b@x.org": "550 5.1.1 unknown"}), auth_require_tls=False) as relay:
        notify = NotifyConfig.model_validate(email(relay.port))
        case.project, case.notifier = structs.replace(case.project, notify=notify), Notifier(notify, case.clock)
        case.restart()
        case.service.report_ended_and_start_due()
        (tmp_path / "1.csv").write_text("SKU;PRICE\nP1;x\n", encoding="utf-8")
        for _ in range(12):
            case.clock.advance(A_DAY_S / 4)
            case.service.report_ended_and_start_due()
        case.service.close()
    assert [to for _, to, _ in relay.mails] == [["a@x.org"]], "of three degraded runs, two bring no news"
    assert sum("refused 1 of 2 recipients" in line for line in case.log) == 1


def test_a_service_that_starts_again_shows_the_last_success(case: ServiceCase) -> None:
    """An alert on its age would find nothing, and never fire, if every run since the start fails."""
    case.looks(nothing)
    with case.project.read_state() as tx:
        (run,) = tx.runs.listed(limit=9)
    case.restart()
    case.service.report_ended_and_start_due()
    case.service.close()
    assert run.finished_at is not None
    assert case.metrics.get("crossdock_last_success_timestamp_seconds") == run.finished_at.timestamp()


def test_a_job_that_another_config_has_run_is_reported(
    tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two services with one state and a job of one name, the second one never runs it: its log says so, once."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path)
    config_path.write_text(config_path.read_text().replace("  wms:", "  other:"), encoding="utf-8")
    second = ServiceCase(tmp_path, receiver, caplog, config=config_path, jobs=NOON)
    case.looks(nothing)
    with closing(case.project.open_state()) as state, state.begin() as tx:
        (run,) = tx.runs.listed(limit=1)
        due = DueRun("nightly", BEGIN - timedelta(days=1), BEGIN.date() - timedelta(days=1))
        assert tx.scheduled_runs.begin_unless_finished(due, at=BEGIN)
        tx.scheduled_runs.finish(due, "done", run.id, None, at=BEGIN)
    second.looks(nothing, nothing)
    assert sum("was of another config: its streams were wms.products" in line for line in second.log) == 1


NOON = {"nightly": job("UTC", schedule={"at": "12:00"})}
A_DAY_S = 86_400.0


@pytest.fixture
def nightly(tmp_path: Path, config_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> ServiceCase:
    """A service with one job that is due once a day; it has run once."""
    case = ServiceCase(tmp_path, receiver, caplog, config=config_path, jobs=NOON)
    case.service.report_ended_and_start_due()
    case.clock.advance(1)
    case.service.report_ended_and_start_due()
    case.clock.advance(A_DAY_S)
    return case


def killed(*_: object) -> None:
    raise KilledError


@pytest.mark.parametrize(
    ("text", "kind"), [("SKU;PRICE\nP1;x\n", "night.degraded"), ('SKU;PRICE\nP1;"1\n', "night.failed")]
)
def test_people_are_told_of_a_run_whose_process_was_killed_after_its_end(
    nightly: ServiceCase, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, text: str, kind: str
) -> None:
    """By the process that takes its place, once."""
    (nightly.folder / "1.csv").write_text(text, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(Notifier, "notify", killed)
        nightly.is_killed()
    nightly.service.report_ended_and_start_due()
    assert notifications(receiver) == [], "the process may still be telling people"
    for _ in range(3):
        nightly.clock.advance(40)
        nightly.service.report_ended_and_start_due()
    assert [each for each, _ in notifications(receiver)] == [kind]
    nightly.looks()


@pytest.mark.nightly
def test_a_warning_that_people_do_not_know_is_told_when_the_channel_works_again(
    nightly: ServiceCase, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next night is degraded, too, and has other warnings, so that its message does not stand for the first."""
    original, text = (
        stream_input.report_doubtful_rows,
        "a record is at the border of a.csv and b.csv",
    )

    def warn(bound: Any, scan: Any) -> None:
        bound.context.run.warn(bound.name, text, code="records_repeated")
        original(bound, scan)

    (nightly.folder / "1.csv").write_text("SKU;PRICE\nP1;x\n", encoding="utf-8")
    receiver.statuses = [503] * 40
    with monkeypatch.context() as patch:
        patch.setattr(stream_input, "report_doubtful_rows", warn)
        nightly.service.report_ended_and_start_due()
    (nightly.folder / "2.csv").write_text("SKU;PRICE\nP2;x\n", encoding="utf-8")
    receiver.statuses = [204]
    receiver.posts.clear()
    nightly.clock.advance(A_DAY_S)
    nightly.looks(nothing)
    told = [exact_json.loads(post.body)["data"]["warnings"] for post in receiver.posts]
    assert [any(text in line for line in warnings) for warnings in told] == [True, False]


def test_people_are_told_of_each_failure_when_the_channel_works_again(nightly: ServiceCase, receiver: Receiver) -> None:
    """Without another run, some minutes after the attempt that failed, and after a restart at once."""
    (nightly.folder / "1.csv").write_text('SKU;PRICE\nP1;"1\n', encoding="utf-8")
    receiver.statuses = [503, 503, 503, 503, 204]
    nightly.service.report_ended_and_start_due()
    for seconds in (60, 120, 130, 60):
        nightly.clock.advance(seconds)
        nightly.service.report_ended_and_start_due()
    assert len(receiver.posts) == 4, "the first pause is five minutes"
    nightly.looks()
    nightly.restart()
    nightly.looks(nothing)
    assert [each for each, _ in notifications(receiver)] == ["night.failed"] * 5
    assert len({exact_json.loads(post.body)["data"]["run"] for post in receiver.posts}) == 1


@pytest.mark.nightly
def test_people_are_told_once_of_a_run_whose_process_is_killed_at_each_attempt(
    nightly: ServiceCase, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the second attempt, which may be killed as well, and when it is over."""
    with monkeypatch.context() as patch:
        patch.setattr(ActiveRun, "_record_end", killed)
        for _ in range(4):
            nightly.is_killed()
    ((kind, error),) = notifications(receiver)
    assert kind == "night.failed"
    assert "the process was killed" in error
    assert "It is tried again." in error
    nightly.looks()
    assert [each for each, _ in notifications(receiver)] == ["night.failed", "night.recovered"]


@pytest.mark.nightly
def test_a_reloaded_config_names_new_recipients(nightly: ServiceCase, receiver: Receiver) -> None:
    """Those of the config before get nothing more."""
    (nightly.folder / "1.csv").write_text("SKU;PRICE\nP1;x\n", encoding="utf-8")
    with served(Receiver()) as other:
        notify = NotifyConfig.model_validate({"webhook": {"url": other.url}})
        nightly.service.reload_when_idle(
            structs.replace(nightly.project, notify=notify), Notifier(notify, nightly.clock)
        )
        nightly.looks()
        assert [each for each, _ in notifications(other)] == ["night.degraded"]
    assert receiver.posts == []


def test_people_are_told_of_runs_that_wait_for_a_reload(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run is in progress, the new config and all other runs wait for its end."""
    monkeypatch.setenv("KEY", "k")
    (tmp_path / "c.yaml").write_text(TWO_CONNECTIONS.format(base_url=PIN.base_url, tenant=PIN.tenant))
    jobs = {
        "load": job("UTC", schedule={"at": "12:00"}, streams=["wms"]),
        "hourly": job("UTC", schedule={"every": "1h"}, streams=["shop"]),
    }
    go_on, original = threading.Event(), sync_and_replay.run_scheduled

    def run(session: Any, due_run: Any, **more: Any) -> Report | None:
        assert due_run.job != "load" or go_on.wait(100)
        return original(session, due_run, **more)

    monkeypatch.setattr(sync_and_replay, "run_scheduled", run)
    with ThreadPoolExecutor(2) as pool:
        case = ServiceCase(tmp_path, receiver, caplog, pool, config=tmp_path / "c.yaml", jobs=jobs)
        case.service.report_ended_and_start_due()
        case.clock.advance(1)
        case.service.report_ended_and_start_due()
        case.service.reload_when_idle(case.project, case.notifier)
        case.clock.advance(3 * 3600)
        for _ in range(3):
            case.service.report_ended_and_start_due()
        (told,) = [exact_json.loads(post.body) for post in receiver.posts]
        go_on.set()
        case.interrupt.set()
        while case.service.busy:
            case.service.report_ended_and_start_due()
        case.service.close()
    assert (told["type"], told["data"]["job"]) == ("night.late", "hourly")
    assert told["data"]["reason"] == "the new config takes effect when what is running has ended: load"
    assert f"no run starts now: {told['data']['reason']}" in case.log


@pytest.mark.parametrize(("after_s", "looks"), [(5.0, 1), (7_200.0, 11)])
def test_a_service_that_starts_without_its_state_tells_people(
    nightly: ServiceCase, receiver: Receiver, after_s: float, looks: int
) -> None:
    """At once of a run that is due then, and after five minutes of one that was due hours before."""
    nightly.service.close()
    nightly.lose_state()
    nightly.clock.advance(after_s)
    nightly.restart()
    for number in range(1, looks + 1):
        assert len(receiver.posts) == 0, number
        nightly.service.report_ended_and_start_due()
        nightly.clock.advance(30)
    assert [each for each, _ in notifications(receiver)] == ["night.failed"]
    nightly.looks(nothing)
    assert len(receiver.posts) == 1


def test_people_are_told_of_a_run_that_fails_because_runs_must_not_overlap(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is also logged, and it is in the list of runs."""
    monkeypatch.setenv("KEY", "k")
    jobs = {"nightly": job("UTC", schedule={"every": "1h", "catch_up": "all"}, overlap="forbid")}
    case = ServiceCase(tmp_path, receiver, caplog, jobs=jobs)
    deliver = ActiveRun.settle_then_deliver_streams

    def slow(run: ActiveRun, *args: Any, **settings: Any) -> None:
        case.clock.advance(3_700)
        deliver(run, *args, **settings)

    case.service.report_ended_and_start_due()
    case.clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(ActiveRun, "settle_then_deliver_streams", slow)
        case.service.report_ended_and_start_due()
    case.clock.advance(60)
    case.looks()
    assert any("nightly for 2025-03-01: failed: due while the run" in line for line in case.log)
    assert any(kind == "night.failed" and "due while the run" in error for kind, error in notifications(receiver))


def test_a_service_with_runs_in_progress_keeps_the_lease(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a second signal no other process may write while a run still does."""
    monkeypatch.setenv("KEY", "k")
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        begun.set()
        assert go_on.wait(30)

    def signal() -> None:
        assert begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(sync_and_replay, "run_scheduled", slow)
    with ThreadPoolExecutor(1) as pool:
        case = ServiceCase(tmp_path, receiver, caplog, pool)
        try:
            with pytest.raises(KeyboardInterrupt):
                case.looks(nothing, signal)
            with (
                closing(case.project.open_state()) as other,
                pytest.raises(StateBusyError),
                other.hold_run_lease("another"),
            ):
                pass
        finally:
            go_on.set()
    case.interrupt.set()
    case.looks()


def test_a_service_whose_state_is_back_is_ready(case: ServiceCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not only after the backlog, which may take hours."""
    seen, original = list[tuple[bool, str]](), sync_and_replay.run_scheduled

    def watched(*arguments: Any, **more: Any) -> Report | None:
        seen.append(case.service_metrics.readiness())
        return original(*arguments, **more)

    monkeypatch.setattr(sync_and_replay, "run_scheduled", watched)
    case.looks(nothing, case.lose_state, case.find_state)
    assert set(seen) == {(True, "ready")}
