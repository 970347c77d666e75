"""Files that an API takes for jobs whose results come later, at three vendors."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from tests.chaos import processes
from tests.e2e.bulk_job_projects import VENDORS, BulkJobProject
from tests.partners.bulk_jobs import AmazonFeeds, BulkJobs, Fault, FaultKind, SalesforceBulk, ShopifyBulk, Step
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.waiting import WITHIN_S

from crossdock.values.clock import SystemClock


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def api(vendor: str) -> Iterator[BulkJobs]:
    with VENDORS[vendor]() as made:
        yield made


def executed(api: BulkJobs) -> Counter[str]:
    return Counter(each.key for each in api.log)


def test_records_arrive_and_change(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """Six records in two jobs, of which one is refused with its reason; then one changes, and all is quiet."""
    project = BulkJobProject(tmp_path, vendor, api)
    api.refuse = lambda payload: "the name is odd" if "Odd" in str(payload) else None
    api.polls_until_done = 3
    project.export(*(f"{number},{'Odd' if number == 5 else 'Name'} {number}," for number in range(1, 7)))
    project.sync(1)
    assert executed(api) == {f"wms:{number}": 1 for number in (1, 2, 3, 4, 6)}
    assert len(api.jobs) == 2
    assert project.listed("rejected") == {"5": "rejected: the name is odd"}
    project.export("1,Other,")
    project.run("sync")
    assert "Other" in str(api.records["wms:1"])
    assert executed(api)["wms:1"] == 2
    effects = len(api.effects)
    project.run("sync")
    assert len(api.effects) == effects


STEPS: tuple[Step, ...] = "open", "upload", "start", "state", "results"
FREQUENT: tuple[FaultKind, ...] = "lost", "cut"
RARE: tuple[FaultKind, ...] = "500", "429"
FAULTS = [pytest.param((step, kind), id=f"{step} {kind}") for step in STEPS for kind in FREQUENT]
FAULTS += [
    pytest.param((step, kind), id=f"{step} {kind}", marks=pytest.mark.nightly) for step in STEPS for kind in RARE
]


@pytest.mark.nightly(but=["shopify"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_on_the_way_does_not_repeat_a_record(
    tmp_path: Path, vendor: str, api: BulkJobs, fault: Fault
) -> None:
    """Whatever request fails once, each record arrives once, or is in doubt after a start that nothing tells of."""
    project = BulkJobProject(tmp_path, vendor, api)
    api.faults.append(fault)
    project.export("1,Name,", "2,Name,")
    done = project.run("sync")
    assert not api.faults, "the fault has not struck"
    is_unknown = fault[0] == "start" and fault[1] != "429" and vendor != "salesforce"
    assert done.exit_code == (1 if is_unknown else 0), done.stdout + done.stderr
    is_executed = not is_unknown or fault[1] == "lost"
    assert executed(api) == (Counter({"wms:1": 1, "wms:2": 1}) if is_executed else Counter())
    assert len(project.listed("in-doubt")) == (2 if is_unknown else 0)
    project.run("sync")
    assert max(executed(api).values(), default=1) == 1


@pytest.mark.nightly(but=["shopify"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", FREQUENT)
def test_a_kill_on_the_way_does_not_repeat_a_record(
    tmp_path: Path, vendor: str, api: BulkJobs, step: Step, kind: FaultKind
) -> None:
    """Wherever a process ends, the next one goes on: it starts no job twice, and asks for that of the one before."""
    if vendor == "amazon":
        pytest.skip("it is as Shopify")
    project = BulkJobProject(tmp_path, vendor, api)
    project.export("1,Name,", "2,Name,", "3,Name,", "4,Name,")
    started = threading.Event()

    def kill(_: FaultKind) -> None:
        started.wait(WITHIN_S)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)

    api.faults.append((step, kind))
    api.on_fault = kill
    with processes.running(project.command("sync"), {"TOKEN": "t"}) as process:
        started.set()
    assert not api.faults
    done = project.run("sync")
    is_unknown = vendor == "shopify" and step == "start"
    assert done.exit_code == (1 if is_unknown else 0), done.stdout + done.stderr
    assert set(executed(api).values()) <= {1}
    assert executed(api).keys() | {f"wms:{key}" for key in project.listed("in-doubt")} == {
        f"wms:{number}" for number in range(1, 5)
    }


def test_a_job_that_is_not_done_is_asked_by_the_next_run(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """The run says that the results are to come; nothing is sent again, and the next run has them."""
    project = BulkJobProject(tmp_path, vendor, api, wait_s=0)
    api.polls_until_done = 2
    project.export("1,Name,", "2,Name,")
    done = project.run("sync")
    assert done.exit_code != 0
    assert "the job has no results after 0 s" in done.stdout + done.stderr
    assert "the next run asks again; nothing is sent twice" in done.stdout + done.stderr
    api.finish_jobs()
    project.configure(wait_s=60)
    project.sync()
    assert executed(api) == {"wms:1": 1, "wms:2": 1}
    assert len(api.jobs) == 1


def test_a_job_that_fails_leaves_in_doubt_what_no_result_names(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """What was carried out is delivered, what was not is a dead letter, and what nothing tells of is in doubt."""
    project = BulkJobProject(tmp_path, vendor, api)
    api.execute_partly = 2
    project.export("1,Name,", "2,Name,", "3,Name,")
    done = project.run("sync")
    assert done.exit_code != 0, done.stdout
    known = {"salesforce": ["3", ""], "shopify": ["", "3"], "amazon": ["", "123"]}
    assert ["".join(sorted(project.listed(state))) for state in ("rejected", "in-doubt")] == known[vendor]
    said = {*project.listed("rejected").values(), *project.listed("in-doubt").values()}
    assert all("the job failed" in each for each in said)


@pytest.mark.nightly(but=["salesforce"])
@pytest.mark.parametrize("status", [302, 501, 507, 520])
def test_an_unclear_answer_to_the_start_does_not_start_again(
    tmp_path: Path, vendor: str, api: BulkJobs, status: int
) -> None:
    """What is in front of an API may answer after the start: the state tells, or a person."""
    project, answer, unclear = BulkJobProject(tmp_path, vendor, api), api.answer, [status]

    def answered(request: PartnerRequest) -> PartnerAnswer:
        step, carried_out = api.step(request), answer(request)
        return PartnerAnswer(unclear.pop(), b"") if step == "start" and unclear else carried_out

    api.answer = answered  # type: ignore[method-assign]  # one fake of this test
    project.export("1,Name,", "2,Name,")
    done = [project.run("sync").exit_code for _ in range(2)]
    assert not unclear
    assert executed(api) == {"wms:1": 1, "wms:2": 1}
    assert done == ([0, 0] if vendor == "salesforce" else [1, 1])
    assert len(project.listed("in-doubt")) == (0 if vendor == "salesforce" else 2)


@pytest.mark.nightly(but=["amazon"])
@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirected_start_was_not_carried_out(tmp_path: Path, vendor: str, api: BulkJobs, status: int) -> None:
    """The run says where it leads and what to correct; nothing is in doubt, and the next one starts the job once."""
    project, answer, moved = BulkJobProject(tmp_path, vendor, api), api.answer, [status]

    def answered(request: PartnerRequest) -> PartnerAnswer:
        if api.step(request) == "start" and moved:
            return PartnerAnswer(moved.pop(), b"", {"location": f"https://new.example{request.path}?token=x"})
        return answer(request)

    api.answer = answered  # type: ignore[method-assign]  # one fake of this test
    project.export("1,Name,", "2,Name,")
    done = project.run("sync")
    assert done.exit_code == 4, done.stdout
    assert re.search(rf"start: redirects to https://new\.example/\S+ \(HTTP {status}\)", done.stderr)
    assert "write the new address in connections.vendor.base_url" in done.stderr
    assert project.listed("in-doubt") == {}
    project.sync()
    assert executed(api) == {"wms:1": 1, "wms:2": 1}


@pytest.mark.nightly(but=["shopify"])
@pytest.mark.parametrize("step", ["upload", "results"])
def test_an_address_that_has_expired_is_given_again(tmp_path: Path, vendor: str, api: BulkJobs, step: Step) -> None:
    """The run says so, and the next one has a new address; nothing is sent twice."""
    if vendor == "salesforce":
        pytest.skip("it has one host")
    project = BulkJobProject(tmp_path, vendor, api)
    api.faults.append((step, "403 expired url"))
    project.export("1,Name,")
    assert project.run("sync").exit_code == 4
    project.sync()
    assert executed(api) == {"wms:1": 1}


def test_reports_may_be_compressed_and_have_warnings(tmp_path: Path) -> None:
    """A warning about a record that was accepted is no refusal."""
    with AmazonFeeds() as api:
        api.gzip_results, api.warn = True, lambda _: "the name is short"
        api.refuse = lambda payload: "the name is odd" if "Odd" in str(payload) else None
        project = BulkJobProject(tmp_path, "amazon", api)
        project.export("1,Name,", "2,Odd,")
        project.sync(1)
        assert project.listed("rejected") == {"2": "rejected: the name is odd"}


@pytest.mark.parametrize(("status", "exit_code"), [(204, 0), (202, 3)])
def test_a_list_of_results_may_have_no_content(tmp_path: Path, status: int, exit_code: int) -> None:
    """204 says that nothing was refused; after 202 the results are asked for by the next run."""
    with SalesforceBulk() as api:
        project, answer = BulkJobProject(tmp_path, "salesforce", api), api.answer

        def answered(request: PartnerRequest) -> PartnerAnswer:
            return PartnerAnswer(status) if request.path.endswith("failedResults") else answer(request)

        api.answer = answered  # type: ignore[method-assign]  # one fake of this test
        project.export("1,Name,", "2,Name,")
        project.sync(exit_code)
        assert not project.listed("in-doubt")
        api.answer = answer  # type: ignore[method-assign]
        project.sync()
        assert executed(api) == {"wms:1": 1, "wms:2": 1}


@pytest.mark.parametrize("place", ["header", "body"])
def test_refusals_on_a_page_that_is_not_read_are_in_doubt(tmp_path: Path, place: str) -> None:
    """The answer with the refusals tells of a next page of them: no other record counts as accepted."""
    with AmazonFeeds() as api:
        file = api.file

        def first_page(request: PartnerRequest) -> PartnerAnswer:
            whole = file(request)
            if request.method != "GET" or not isinstance(whole.body, bytes):
                return whole
            headers = {**whole.headers, "link": '</report?page=2>; rel="next"'} if place == "header" else whole.headers
            report = json.loads(whole.body) | ({"pagination": {"nextToken": "x"}} if place == "body" else {})
            return replace(whole, headers=headers, body=json.dumps(report).encode())

        api.file = first_page  # type: ignore[method-assign]  # one fake of this test
        api.refuse = lambda payload: "the name is odd" if "Odd" in str(payload) else None
        project = BulkJobProject(tmp_path, "amazon", api)
        project.export("1,Name,", "2,Odd,")
        project.sync(1)
        assert project.listed("rejected") == {"2": "rejected: the name is odd"}
        assert "tells of a next page, which is not read" in project.listed("in-doubt")["1"]


@pytest.mark.nightly(but=["salesforce"])
def test_a_job_that_the_api_has_forgotten_is_in_doubt(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """A person settles it, and a later version of the record is sent."""
    project = BulkJobProject(tmp_path, vendor, api, wait_s=0)
    api.polls_until_done = 9
    project.export("1,Name,")
    project.run("sync")
    api.jobs.clear()
    assert project.run("sync").exit_code == 1
    assert project.listed("in-doubt").keys() == {"1"}
    resolved = project.run("records", "resolve", "wms.records", "1", "--delivered", "--yes")
    assert resolved.exit_code == 0, resolved.stderr
    project.configure(wait_s=60)
    project.export("1,Other,")
    project.sync()
    assert "Other" in str(api.records["wms:1"])


def answer_first(api: BulkJobs, step: Step, *answers: PartnerAnswer | Literal["denied"]) -> list[Any]:
    """Give the next requests of *step* these answers, or one of an API that has no job, and return those to come."""
    answer, left = api.answer, [*answers]

    def answered(request: PartnerRequest) -> PartnerAnswer:
        if api.step(request) != step or not left:
            return answer(request)
        if isinstance(given := left.pop(0), PartnerAnswer):
            return given
        jobs, api.jobs = api.jobs, {}
        denied = answer(request)
        api.jobs = jobs
        return denied

    api.answer = answered  # type: ignore[method-assign]  # one fake of this test
    return left


UNCLEAR: dict[str, PartnerAnswer | Literal["denied"]] = {
    "a page": PartnerAnswer(200, b"<html>Please wait</html>"),
    "nothing": PartnerAnswer(200, b""),
    "null": PartnerAnswer(200, b"null"),
    "a page of 404": PartnerAnswer(404, b"<html>Not Found</html>"),
    "denied": "denied",
}


@pytest.mark.nightly(but=["amazon"])
@pytest.mark.parametrize("unclear", UNCLEAR.values(), ids=UNCLEAR)
def test_the_state_is_asked_again_after_an_unclear_answer(
    tmp_path: Path, vendor: str, api: BulkJobs, unclear: PartnerAnswer | Literal["denied"]
) -> None:
    """What a gateway answers, and what an API answers that shows a new job late, is no word about the job."""
    project = BulkJobProject(tmp_path, vendor, api)
    left = answer_first(api, "state", unclear, unclear)
    project.export("1,Name,", "2,Name,")
    project.sync()
    assert not left
    assert executed(api) == {"wms:1": 1, "wms:2": 1}


def test_a_page_in_answer_to_the_start_is_a_lost_answer(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """The state tells whether the job was started, or `if_lost` decides."""
    project = BulkJobProject(tmp_path, vendor, api, if_lost="resend")
    answer_first(api, "start", PartnerAnswer(200, b"<html>Please wait</html>"))
    project.export("1,Name,", "2,Name,")
    project.sync()
    assert executed(api) == {"wms:1": 1, "wms:2": 1}


@pytest.mark.nightly(but=["amazon"])
@pytest.mark.parametrize(("known", "exit_code"), [(0, 1), (3, 4)])
def test_an_api_has_forgotten_a_job_that_it_does_not_know_as_long_as_a_run_waits(
    tmp_path: Path, vendor: str, api: BulkJobs, known: int, exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in doubt then. One that was known in that time is asked for by the next run."""
    project, answer, monotonic, passed_s = BulkJobProject(tmp_path, vendor, api), api.answer, SystemClock.monotonic, 0
    project.configure(wait_s=1_000)
    api.polls_until_done, asked = 99, 0
    monkeypatch.setattr(SystemClock, "monotonic", lambda clock: monotonic(clock) + passed_s)

    def answered(request: PartnerRequest) -> PartnerAnswer:
        nonlocal passed_s, asked
        if api.step(request) == "state":
            passed_s, asked = passed_s + 300, asked + 1
            if asked > known:
                return PartnerAnswer(404, b"<html>Not Found</html>")
        return answer(request)

    api.answer = answered  # type: ignore[method-assign]  # one fake of this test
    project.export("1,Name,")
    done = project.sync(exit_code)
    assert asked == 4
    assert [*project.listed("in-doubt")] == (["1"] if exit_code == 1 else [])
    told = done.stderr if exit_code == 4 else project.listed("in-doubt")["1"]
    assert "the API does not know the job: " in told
    assert executed(api) == {"wms:1": 1}


def test_a_job_is_in_doubt_if_the_config_has_none_any_more(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """It was started, and nothing else knows of it; the tally balances."""
    project = BulkJobProject(tmp_path, vendor, api, wait_s=0)
    api.polls_until_done = 9
    project.export("1,Name,")
    project.run("sync")
    document = yaml.safe_load(project.config.read_text())
    resource = document["connections"]["vendor"]["target"]["resources"]["records"]
    for name in ("job", "content", "records_per_file"):
        del resource[name]
    resource["create"] = "POST /records"
    project.config.write_text(yaml.safe_dump(document))
    done = project.run("sync")
    assert (done.exit_code, "the config has another place now" in done.stdout + done.stderr) == (1, False), done.stdout
    assert project.listed("in-doubt").keys() == {"1"}
    assert executed(api) == {"wms:1": 1}


def test_other_hosts_are_named_and_get_no_credentials(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """A file goes to a host that an answer names only if the config does, and without a credential."""
    if vendor == "salesforce":
        pytest.skip("it has one host")
    project = BulkJobProject(tmp_path, vendor, api, hosts=["files.example.com"])
    project.export("1,Name,")
    done = project.run("sync")
    assert done.exit_code != 0
    assert "upload is on another host" in done.stdout + done.stderr
    assert ".job.hosts" in done.stdout + done.stderr
    assert not api.log
    project.configure(hosts=[api.storage_url.removeprefix("http://")])  # type: ignore[attr-defined]  # these have one
    project.sync()
    assert executed(api) == {"wms:1": 1}


def test_a_refused_start_is_tried_again(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """A job that the API does not start changes nothing; the run says why, and the next one starts it."""
    project = BulkJobProject(tmp_path, vendor, api)
    token, api.token = api.token, "another"
    project.export("1,Name,")
    assert project.run("sync").exit_code != 0
    api.token = token
    project.sync()
    assert executed(api) == {"wms:1": 1}


def refuse_files(api: BulkJobs, text: bytes, step: Step = "upload") -> list[int]:
    """Refuse files with *text*, and return the numbers of their records, which are added later."""
    answer, refused = api.answer, list[int]()

    def answered(request: PartnerRequest) -> PartnerAnswer:
        if api.step(request) == step and text in request.body:
            refused.append(request.body.count(b"wms:"))
            return PartnerAnswer(413, [{"errorCode": "EXCEEDED_MAX_SIZE_REQUEST", "message": "too large"}])
        return answer(request)

    api.answer = answered  # type: ignore[method-assign]  # of this one
    return refused


def test_a_refused_file_is_divided(tmp_path: Path) -> None:
    """One record of four is the reason: the others arrive, and it is rejected alone until its source has changed it."""
    with SalesforceBulk() as api:
        project, refused = BulkJobProject(tmp_path, "salesforce", api), refuse_files(api, b"Odd")
        project.export(*(f"{number},{'Odd' if number == 3 else 'Name'}," for number in range(1, 7)))
        project.sync(1)
        assert refused == [4, 1]
        others = {f"wms:{number}": 1 for number in (1, 2, 4, 5, 6)}
        assert executed(api) == others
        assert project.listed("rejected") == {"3": "rejected: upload: too large (HTTP 413)"}
        project.export("3,Name,")
        project.sync()
        assert executed(api) == others | {"wms:3": 1}


def test_a_refusal_of_each_file_is_no_rejection(tmp_path: Path) -> None:
    """While nothing was accepted, the config may be wrong: a file is divided once, and the next run makes it again."""
    with SalesforceBulk() as api:
        project, answer, refused = BulkJobProject(tmp_path, "salesforce", api), api.answer, refuse_files(api, b"Name")
        project.records_per_file = 20
        project.configure()
        project.export(*(f"{number},Name," for number in range(1, 21)))
        done = project.run("sync")
        assert (done.exit_code, refused, executed(api)) == (4, [20, 5, 5, 5, 5], {})
        assert "upload: too large (HTTP 413)" in done.stdout + done.stderr
        assert project.listed("rejected") == {}
        api.answer = answer  # type: ignore[method-assign]  # the usual one
        project.records_per_file = 10
        project.configure()
        project.sync()
        assert executed(api) == {f"wms:{number}": 1 for number in range(1, 21)}
        assert [len(job.outcomes) for job in api.jobs.values() if job.outcomes] == [10, 10]


def test_a_429_because_of_other_jobs_is_not_about_the_rate(tmp_path: Path, vendor: str, api: BulkJobs) -> None:
    """It has the text of `busy`: the start waits for the other jobs, and nothing counts as throttled."""
    project = BulkJobProject(tmp_path, vendor, api, busy=["concurrent jobs"])
    refusal = PartnerAnswer(429, {"message": "Maximum number of Concurrent Jobs reached"})
    left = answer_first(api, "start", *[refusal] * 5)
    project.export("1,Name,", "2,Name,")
    project.sync()
    assert not left
    assert executed(api) == {"wms:1": 1, "wms:2": 1}
    assert json.loads(project.run("runs", "--json").stdout)[0]["throttled"] == 0


def test_a_start_waits_for_other_jobs_as_long_as_they_say(tmp_path: Path) -> None:
    """A longer Retry-After is obeyed in place of `poll_s`."""
    with SalesforceBulk() as api:
        project, answer, started_at = (
            BulkJobProject(tmp_path, "salesforce", api, busy="other"),
            api.answer,
            list[float](),
        )

        def answered(request: PartnerRequest) -> PartnerAnswer:
            if api.step(request) == "start":
                started_at.append(time.monotonic())
            if len(started_at) == 1:
                return PartnerAnswer(429, {"message": "other jobs"}, {"retry-after": "1"})
            return answer(request)

        api.answer = answered  # type: ignore[method-assign]  # one fake of this test
        project.export("1,Name,")
        project.sync()
        assert started_at[1] - started_at[0] >= 1


def test_a_job_waits_for_others_without_a_slower_rate(tmp_path: Path) -> None:
    """Another program's job runs first: that is no sign of the rate limit, and nothing counts as throttled."""
    with ShopifyBulk() as api:
        project, answer, refusals = BulkJobProject(tmp_path, "shopify", api), api.answer, 40

        def answered(request: PartnerRequest) -> PartnerAnswer:
            nonlocal refusals
            api.limit = 0 if refusals > 0 else None
            refusals -= api.step(request) == "start"
            return answer(request)

        api.answer = answered  # type: ignore[method-assign]  # one fake of this test
        project.export("1,Name,", "2,Name,")
        project.sync()
        assert refusals < 0
        assert executed(api) == {"wms:1": 1, "wms:2": 1}
        run = json.loads(project.run("runs", "--json").stdout)[0]
        assert run["throttled"] == 0


@pytest.mark.parametrize("limit", [1, 5])
def test_a_job_that_cannot_be_started_is_left_to_the_next_run(tmp_path: Path, limit: int) -> None:
    """Jobs of others that do not end are named after the time in which a run waits, whatever the API calls it."""
    with ShopifyBulk() as api:
        project = BulkJobProject(tmp_path, "shopify", api)

        def wait(seconds: int) -> None:
            project.configure(wait_s=seconds)
            if limit > 1:
                text = project.config.read_text(encoding="utf-8")
                project.config.write_text(text.replace("2025-10", "2026-10"), encoding="utf-8")

        wait(0)
        api.polls_until_done = 9
        project.export(*(f"{number},Name," for number in range(1, 4 * limit + 1)))
        done = project.run("sync")
        assert done.exit_code != 0
        assert len(api.jobs) == limit
        project.export("99,Name,")
        done = project.run("sync")
        assert "other jobs of the API must end first" in done.stdout + done.stderr
        assert "in doubt" not in done.stdout
        api.finish_jobs()
        wait(60)
        project.sync()
        assert executed(api) == {f"wms:{number}": 1 for number in (*range(1, 4 * limit + 1), 99)}


def test_a_busy_host_of_files_slows_no_request_to_the_api(tmp_path: Path) -> None:
    """Its 429 is obeyed, and says nothing about the rate limit of the API."""
    with ShopifyBulk() as api:
        project = BulkJobProject(tmp_path, "shopify", api)
        faults: list[Fault] = [("upload", "429"), ("results", "429")]
        api.faults += [fault for fault in faults for _ in range(20)]
        project.export("1,Name,")
        project.sync()
        assert not api.faults
        assert executed(api) == {"wms:1": 1}
        assert json.loads(project.run("runs", "--json").stdout)[0]["throttled"] == 0
