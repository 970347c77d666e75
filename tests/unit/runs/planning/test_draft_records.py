"""Records become drafts, or dead letters that say why without quoting data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import InternalError, RecordError
from crossdock.resources import CustomerDraft, Reference
from crossdock.runs.planning import mapping_to_drafts
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.values.raw_rows_and_records import Record

SECRET = "Erika Mustermann"


class Strict(BaseModel):
    """A model of a connector's author."""

    price: int


def mapped(to_resource: Callable[[Record], Any], key: str = "A") -> tuple[dict[str, Any], list[Reference]]:
    bound: BoundStream = bound_accounts()
    bound.stream.to_resource = to_resource  # type: ignore[method-assign, assignment]
    record = account(bound, key).record
    record.row["NOTE"] = SECRET
    return map_record_to_draft_members(bound, record)


def raising(error: BaseException) -> Callable[[Record], Any]:
    def to_resource(_record: Record) -> Any:
        raise error

    return to_resource


def test_members_and_references() -> None:
    """The members have wire names, and the references among them are listed."""
    bound = bound_accounts()
    members, references = map_record_to_draft_members(bound, account(bound, "A", "P").record)
    assert references == [Reference("ledger_account", "P")]
    assert members == {"code": "A", "name": "x", "type": "asset", "parentId": references[0]}


@pytest.mark.parametrize(
    ("to_resource", "code", "pointer", "message"),
    [
        pytest.param(raising(RecordError("bad_value", "no", pointer="K")), "bad_value", "K", "no", id="as raised"),
        pytest.param(
            raising(RecordError("bad_value", f"a\x1b{'b' * 600}")), "bad_value", None, "a\\x1bb", id="printable"
        ),
        pytest.param(
            raising(RecordError("my_code", SECRET)), "mapping_failed", None, "raised RecordError", id="unknown code"
        ),
        pytest.param(raising(KeyError(SECRET)), "mapping_failed", None, "raised KeyError in line", id="exception"),
        pytest.param(
            raising(ValueError(f"no zone: {SECRET}")),
            "mapping_failed",
            None,
            ": no zone: (data) (data)",
            id="text",
        ),
        pytest.param(raising(MemoryError()), "mapping_failed", None, "raised MemoryError in line", id="memory"),
        pytest.param(raising(InternalError("x")), "mapping_failed", None, "raised InternalError in line", id="own"),
        pytest.param(raising(SystemExit(0)), "mapping_failed", None, "raised SystemExit in line", id="sys.exit"),
        pytest.param(
            lambda _: Strict.model_validate({"price": SECRET}),
            "mapping_failed",
            None,
            "raised ValidationError",
            id="an author's model",
        ),
        pytest.param(lambda _: {"code": "A"}, "invalid_draft", "/name", "is missing", id="a missing member"),
        pytest.param(lambda _: {"nmae": "A"}, "invalid_draft", "/", "", id="an unknown member"),
        pytest.param(lambda _: 17, "mapping_failed", None, "returned int instead of LedgerAccountDraft", id="a number"),
        pytest.param(
            lambda _: CustomerDraft(name="A"), "mapping_failed", None, "returned CustomerDraft", id="another resource"
        ),
    ],
)
def test_every_failure_is_a_dead_letter(
    to_resource: Callable[[Record], Any], code: str, pointer: str | None, message: str
) -> None:
    """The code is one of the list, and the message has the text of the exception without the record's values."""
    with pytest.raises(RecordError) as caught:
        mapped(to_resource)
    error = caught.value
    assert error.code == code
    assert (error.pointer or "").startswith(pointer or "")
    assert message in error.message
    assert len(error.message) <= 600
    assert SECRET not in str(error)


def test_a_draft_has_at_most_as_many_values_as_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the request could not be written: it would end the run instead of being a dead letter."""
    members = {"items": [{"sku": "a", "more": [1, 2]}, {}], "parent": Reference("product", "P")}
    monkeypatch.setattr(mapping_to_drafts, "_MANY", 1)
    monkeypatch.setattr(mapping_to_drafts, "_MOST", 7)  # two commas and an item's comma, three brackets and one inside
    mapping_to_drafts._raise_if_too_many_values(members)
    monkeypatch.setattr(mapping_to_drafts, "_MOST", 6)
    with pytest.raises(RecordError, match="has more than 1,000,000 values") as refused:
        mapping_to_drafts._raise_if_too_many_values(members)
    assert (refused.value.code, refused.value.pointer) == ("invalid_draft", "/items")


def test_an_external_id_has_a_limit() -> None:
    """Namespace and key form the external id, which the platform limits."""
    with pytest.raises(RecordError, match="namespace and record key together exceed") as caught:
        mapped(lambda _: {"code": "A", "name": "x", "type": "asset"}, key="a" * 1_000)
    assert (caught.value.code, caught.value.pointer) == ("invalid_draft", "/externalId")


def test_an_interruption_is_no_dead_letter() -> None:
    """It ends the run."""
    with pytest.raises(KeyboardInterrupt):
        mapped(raising(KeyboardInterrupt()))
