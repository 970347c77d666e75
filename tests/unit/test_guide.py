"""What the guide says about limits, schedules, files and money is what the code does, and it shows every config key."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import yaml
from pydantic import ValidationError
from tests.documentation.fences import DOCS, PAGES
from tests.unit.test_docs import CONFIGURE, EXAMPLES, SOURCE_FILES, WHOLE, blocks, known_keys

from crossdock import ProductDraft
from crossdock.cli.main import main
from crossdock.config.schedules import Schedule
from crossdock.config.schedules.due_times import due_times_between
from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows
from crossdock.reading.formats.delimited_layout import DelimitedFormat, Trailer
from crossdock.reading.formats.fixed_width_files import read_fixed_width_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat
from crossdock.services.inbox import (
    webhook_receiver_and_writer,
    webhook_record_delivery,
    webhook_verification_and_parsing,
)
from crossdock.services.scheduler.apscheduler_daemon import POLL_S
from crossdock.state.tables.webhooks_and_records_to_fetch import LONGEST_PAUSE
from crossdock.values import exact_json
from crossdock.webhooks import Reason, WebhookScheme, WebhookVerifier
from crossdock.writing.delivery.send_queue_and_threads import OPENS_AT, WATCHED


def test_the_guide_shows_every_config_key() -> None:
    """Each key stands in the code of a page other than the reference, where its use is explained."""
    words: set[str] = set()
    for page in PAGES:
        if page.parent.name != "reference":
            text = page.read_text(encoding="utf-8")
            fenced, prose = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE), re.sub(r"```", "", text)
            for code in (*fenced, *re.findall(r"`[^`]+`|^    .+$", prose, re.MULTILINE)):
                words.update(re.findall(r"\w+", code))
    assert known_keys() - words == set()


def test_the_guide_states_the_limits_of_the_circuit_breaker() -> None:
    """The page on outages names the number of failures at which sending stops."""
    page = (DOCS / "how_to" / "run" / "outages.md").read_text(encoding="utf-8")
    assert f"When {OPENS_AT} of the latest {WATCHED} requests fail" in page


def test_the_guide_states_the_limits_of_the_receiver() -> None:
    """The pages on webhooks have the times and numbers of the code, and every reason for which one is not processed."""
    pages = [*sorted((DOCS / "how_to").glob("listen/*.md")), DOCS / "how_to" / "deploy" / "nginx_or_caddy.md"]
    page = " ".join(" ".join(page.read_text(encoding="utf-8") for page in pages).split())
    pauses = (
        webhook_record_delivery.FIRST_PAUSE.total_seconds(),
        LONGEST_PAUSE.total_seconds() / 3_600,
    )
    assert pauses == (1, 1)
    stated = (
        f"is recognized for {webhook_receiver_and_writer.WEBHOOKS_KEPT.days} days",
        (
            f"could not store it within {webhook_receiver_and_writer.STORED_WITHIN_S:.0f} seconds; `Retry-After` is "
            f"{webhook_receiver_and_writer.RETRY_AFTER_S}"
        ),
        f"not complete within {webhook_receiver_and_writer._CLIENTS.body_s:.0f} seconds each",
        f"about more than {webhook_verification_and_parsing.MOST_HINTS:,} records",
        f"at most {POLL_S:.0f} seconds later",
        f"bodies of more than {webhook_receiver_and_writer.BODIES_AT_MOST >> 20} MiB in all",
        f"bodies of {WebhookScheme().max_body_bytes >> 20} MiB",
        "again after 1 second, and then after pauses that double up to an hour",
    )
    assert [text for text in stated if text not in page] == []
    rows = re.findall(r"\| (`[a-z_`, ]+`) \| [0-9]{3} \|", page)
    told = {code for row in rows for code in re.findall("[a-z_]+", row)}
    of_receiver = {"unknown_connection", "not_stored", "too_much_at_once", "unreadable", "not_http"}
    assert told == {*get_args(Reason), *of_receiver} - {"replayed", "in_progress"}


def test_a_webhook_that_is_made_by_hand_is_accepted(tmp_path: Path) -> None:
    """The commands of the page on webhooks sign as the connection of its config expects."""
    config = next(data for data in EXAMPLES.values() if "listen" in data)
    (script,) = [text for text in blocks(DOCS / "how_to" / "listen" / "receive_webhooks.md", "sh") if "openssl" in text]
    secret = tmp_path / "desk-secret"
    secret.write_text("of-the-tests", encoding="utf-8")
    script = script.replace("/etc/crossdock/desk-secret", str(secret)).partition("curl")[0]
    command = f'{script}printf \'%s\\n\' "$BODY" "sha256=$SIGNATURE"'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    body, signature = done.stdout.splitlines()
    scheme = WebhookScheme.model_validate(config["connections"]["desk"]["webhooks"]["scheme"])
    assert WebhookVerifier(scheme, ["of-the-tests"]).verify(body.encode(), {"X-Desk-Signature": signature}).id is None


def test_files_with_the_suffixes_of_the_guide_are_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged file whose name ends as the page on partial files lists does not count."""
    page = (CONFIGURE / "partial_files.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| Its name ends with (.*?)\. \|", page, re.MULTILINE)
    suffixes = re.findall(r"`([^`]+)`", row)
    folder, mapped = tmp_path / "exports", {"sku": "SKU", "name": "NAME"}
    folder.mkdir()
    for name in ("ITEM_1.csv", *(f"ITEM_2.csv{suffix}" for suffix in suffixes)):
        (folder / name).write_text("SKU,NAME\n0017,Bolt\n" if name == "ITEM_1.csv" else "damaged")
        os.utime(folder / name, (1_300_000_000, 1_300_000_000))
    stream = {"files": "ITEM_*", "mode": "append", "key": ["SKU"], "resource": "product", "map": mapped}
    connection = {
        "kind": "folder_warehouse",
        "path": "exports",
        "settle_s": 0,
        "streams": {"products": {**stream, "format": {}}},
    }
    config = {"platform": WHOLE["platform"], "connections": {"wms": connection}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    for command in ("init", "plan"):
        with suppress(SystemExit):
            main(["-C", str(tmp_path / "c.yaml"), command, "--json"])
        told = json.loads(capsys.readouterr().out)
    assert len(suffixes) == 10
    assert told["errors"] == {}
    assert told["operations"] == {"create": 1}


def test_the_comments_of_the_schedule_examples_are_true() -> None:
    """Holidays and blackouts move runs as the page says."""
    jobs = next(data["jobs"] for data in EXAMPLES.values() if "stock" in data.get("jobs", {}))
    berlin = ZoneInfo("Europe/Berlin")
    invoices, stock = (Schedule.model_validate(jobs[name]["schedule"]) for name in ("invoices", "stock"))
    week = datetime(2026, 12, 24, tzinfo=berlin), datetime(2026, 12, 31, tzinfo=berlin)
    assert [one.instant.astimezone(berlin) for one in due_times_between(invoices, *week)] == [
        datetime(2026, 12, 28, 6, tzinfo=berlin)
    ]
    day = datetime(2026, 11, 20, tzinfo=berlin), datetime(2026, 11, 20, 23, 30, tzinfo=berlin)
    times = [one.instant.astimezone(berlin).strftime("%H:%M") for one in due_times_between(stock, *day)]
    assert times == ["01:30", "06:00", "12:00", "18:00"]
    christmas = datetime(2026, 12, 24, 12, tzinfo=berlin), datetime(2026, 12, 26, 23, 59, tzinfo=berlin)
    assert list(due_times_between(stock, *christmas)) == []


def streams_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a config, or of an example that has streams or a part of one."""
    if "format" in config:
        return [config]
    if all(isinstance(each, dict) and "files" in each for each in config.values()):
        return list(config.values())
    connections = config.get("connections", {}).values()
    declared = [connection["streams"] for connection in connections if isinstance(connection.get("streams"), dict)]
    return [stream for streams in declared for stream in streams.values()]


LEGACY = [
    stream
    for data in EXAMPLES.values()
    for stream in streams_of(data)
    if "record_types" in stream.get("format", {}) or "columns" in stream.get("format", {})
]


def test_the_trailer_of_the_guide_counts_header_and_trailer(tmp_path: Path) -> None:
    """The example with `count_includes` reads the file in its comment, and refuses one that lacks a row."""
    streams = [stream for data in EXAMPLES.values() for stream in streams_of(data) if "count_includes" in str(stream)]
    (layout,) = (DelimitedFormat.model_validate(stream["format"]) for stream in streams)
    file = tmp_path / "ITEM_1.txt"
    file.write_text("SKU|NAME\n0017|Bolt\n0018|Nut\nTRL|4\n")
    assert sum(rows.height for rows in read_delimited_rows(file, layout, name=file.name)) == 2
    file.write_text("SKU|NAME\n0017|Bolt\nTRL|4\n")
    with pytest.raises(RefusedError, match="the trailer counts 4"):
        list(read_delimited_rows(file, layout, name=file.name))


def test_the_legacy_layouts_of_the_guide_read_what_their_comments_say(tmp_path: Path) -> None:
    """The mainframe's file has zoned prices, and the file with several types is the one in the comment."""
    formats = {each["format"].get("kind", "types"): each["format"] for each in LEGACY}
    file = tmp_path / "ITEM_1.dat"
    file.write_bytes(f"{'0017':8}{'Bolt':22}000123D   ".encode("cp037"))
    layout = FixedWidthFormat.model_validate(formats["fixed_width"])
    (frame,) = read_fixed_width_rows(file, layout, name=file.name)
    assert frame.rows() == [("0017", "Bolt", "12.34", 1)]
    (page,) = re.findall(r'"PRICES_\*.txt" +# (.*)', (CONFIGURE / "record_types.md").read_text(encoding="utf-8"))
    file.write_text("".join(f"{line}\n" for line in page.split(", ")))
    rows = pl.concat(read_delimited_rows(file, DelimitedFormat.model_validate(formats["types"]), name=file.name))
    assert rows.select("GROUP", "SKU", "PRICE").rows() == [("Bolts", "0017", "9.50"), ("Bolts", "0018", "2.50")]


def test_the_copybook_of_the_guide_reads_records_as_rows_of_its_table(tmp_path: Path) -> None:
    """The example reads a record with two bins, and `rows: BIN` makes two rows of it."""
    ((name, text),) = [each for each in SOURCE_FILES if each[0].endswith(".cpy")]
    (tmp_path / name).write_text(text)
    (form,) = [
        stream["format"] for data in EXAMPLES.values() for stream in streams_of(data) if "copybook" in str(stream)
    ]
    record = f"{'0017':8}{'Bolt':20}".encode("cp037") + bytes.fromhex("0001234D") + "    02".encode("cp037")
    record += "B00001".encode("cp037") + bytes.fromhex("00012C") + "B00002".encode("cp037") + bytes.fromhex("00003D")
    file = tmp_path / "STOCK_1.dat"
    file.write_bytes((len(record) + 4).to_bytes(2, "big") + b"\0\0" + record)
    copybook = {"file": tmp_path / name, "rows": "BIN"}
    layout = FixedWidthFormat.model_validate({**form, "copybook": copybook})
    (frame,) = read_fixed_width_rows(file, layout, name=file.name)
    assert frame.select("SKU", "PRICE", "BIN(n)", "CODE", "QTY").rows() == [
        ("0017", "-12.34", "1", "B00001", "12"),
        ("0017", "-12.34", "2", "B00002", "-3"),
    ]


def test_what_the_guide_says_about_a_file_that_was_cut_is_true(tmp_path: Path) -> None:
    """Cut in its last cell, a file without a trailer looks whole; with gzip or a trailer it is refused."""
    whole = b"SKU;PRICE\n0017;1.50\n0018;12.50\n"
    file, layout = tmp_path / "ITEM_1.txt", DelimitedFormat(delimiter=";")
    file.write_bytes(whole[: whole.rindex(b".")])
    rows = [
        row
        for frame in read_delimited_rows(file, layout, name=file.name)
        for row in frame.select("SKU", "PRICE").rows()
    ]
    assert rows[-1] == ("0018", "12")
    file.write_bytes(gzip.compress(whole)[:-1])
    with pytest.raises(RefusedError, match="before its end marker"):
        list(read_delimited_rows(file, layout, name=file.name))
    counted = DelimitedFormat(delimiter=";", trailer=Trailer(prefix="TRL;", count=1))
    file.write_bytes(whole[: whole.rindex(b".")])
    with pytest.raises(RefusedError, match="the last line is not the trailer"):
        list(read_delimited_rows(file, counted, name=file.name))


def test_what_the_guide_says_about_money_in_connectors_is_true() -> None:
    """JSON numbers arrive exact; a draft takes `Decimal` and `int`, and neither `float` nor text."""
    parsed = exact_json.loads('[12.50, 125e-1, 12, "12.50"]')
    assert [type(value) for value in parsed] == [Decimal, Decimal, int, str]
    assert {Decimal(value) for value in parsed} == {Decimal("12.5"), Decimal(12)}
    product = {"sku": "0017", "name": "Lamp"}
    for price in (Decimal("12.50"), 12):
        assert ProductDraft.model_validate({**product, "unitPrice": price}).unit_price == price
    for refused in (12.5, "12.50", Decimal("0.00001"), Decimal(10) ** 15):
        with pytest.raises(ValidationError, match="unitPrice"):
            ProductDraft.model_validate({**product, "unitPrice": refused})
