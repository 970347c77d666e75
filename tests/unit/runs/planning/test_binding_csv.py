"""Bindings as CSV: what is exported can be imported, and a bad file binds nothing."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.runs.planning.accounts import platform_target

from crossdock.config.project.project import KnownNamespaces
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError
from crossdock.runs.planning.binding_csv import COLUMNS, export_bindings, import_bindings
from crossdock.state import Scope, State
from crossdock.values.record_keys import key_text

AT = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = ",".join(COLUMNS)
ROWS = ["platform,product,wms,P1,prd_1", "platform,product,wms,P2,prd_2", "platform,customer,shop,a%2Cb|c,cus_1"]
KNOWN = KnownNamespaces(frozenset({"wms", "shop"}), frozenset({"erp"}))
PRODUCTS = Scope("platform", "product", "wms")


def write(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "b.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def imported(state: State, path: Path) -> int:
    with state.begin() as tx:
        return import_bindings(tx, path, {"platform": platform_target()}, at=AT, namespaces=KNOWN)


def exported(state: State) -> list[str]:
    out = io.StringIO()
    with state.begin_read_only() as tx:
        number = export_bindings(tx, out)
    header, *rows = out.getvalue().splitlines()
    assert (header, number) == (HEADER, len(rows))
    return sorted(rows)


def test_an_import_is_exported_again(state: State, tmp_path: Path) -> None:
    """A second import of the same file binds nothing; the payload is unknown until the next sync."""
    path = write(tmp_path, *ROWS)
    assert (imported(state, path), imported(state, path)) == (3, 0)
    assert exported(state) == sorted(ROWS)
    with state.begin_read_only() as tx:
        (binding,) = tx.bindings.get(PRODUCTS, [key_hashes(["P1"])["P1"]]).values()
    assert (binding.target_id, binding.step, binding.payload, binding.counter) == ("prd_1", "import", {}, 0)


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        pytest.param(["platform,product,wms,P3"], 2, "has 4 cells; expected 5", id="short"),
        pytest.param(["platform,product,wms,,x"], 2, "needs a value in each of", id="empty"),
        pytest.param(["shipbob,product,wms,P3,x"], 2, "unknown target 'shipbob'; known: platform", id="target"),
        pytest.param(["platform,shoe,wms,P3,x"], 2, "unknown resource 'shoe'", id="resource"),
        pytest.param(["platform,product,wms,P3,.."], 2, "target_id must be 1 to", id="id"),
        pytest.param(["platform,product,wms,P3,a\u202eb"], 2, "not printable", id="not printable"),
        pytest.param(
            ["platform,product,wms,P3,x", "platform,product,wms,P3,y"], 3, "duplicate of P3 on line 2", id="duplicate"
        ),
        pytest.param(
            ["platform,product,wms,P3,x", "platform,product,wms,P4,x"],
            3,
            "x is already bound to wms:P3",
            id="shared id",
        ),
        pytest.param(["platform,product,shop,P1,prd_1"], 2, "prd_1 is already bound to wms:P1", id="id of another"),
        pytest.param(
            ["platform,product,wms,a b,x", "platform,product,wms,a%20b,y"],
            3,
            "duplicate of a%20b on line 2",
            id="twice",
        ),
        pytest.param(
            ["platform,product,wsm,P3,x"],
            2,
            "no stream writes in the namespace 'wsm'; known: shop, wms",
            id="namespace",
        ),
        pytest.param(
            ["platform,product,wsm+wms.stock,P3,x"], 2, "in the namespace 'wsm'", id="namespace of a contribution"
        ),
        pytest.param(["platform,product,wms,a|b c,x"], 2, "a|b c has a | and is not percent-encoded", id="ambiguous"),
    ],
)
def test_a_bad_row_refuses_the_file(state: State, tmp_path: Path, rows: list[str], line: int, message: str) -> None:
    """The message has the line, the file is to be corrected (exit 2), and no row of it is bound."""
    imported(state, write(tmp_path, *ROWS))
    with pytest.raises(ConfigError) as refused:
        imported(state, write(tmp_path, *rows))
    assert str(refused.value).startswith(f"{tmp_path / 'b.csv'}:{line}: ")
    assert message in refused.value.message
    assert exported(state) == sorted(ROWS)


def test_another_import_corrects_an_id_that_no_comparison_has_found(state: State, tmp_path: Path) -> None:
    """A mistyped id is replaced, and one that the target was seen to have is not."""
    imported(state, write(tmp_path, *ROWS))
    with state.begin() as tx:
        tx.bindings.mark_verified(PRODUCTS, list(tx.bindings.get(PRODUCTS, [key_hashes(["P1"])["P1"]]).values()))
    with pytest.raises(ConfigError, match="P1 is already bound to prd_1"):
        imported(state, write(tmp_path, "platform,product,wms,P1,prd_3"))
    assert imported(state, write(tmp_path, "platform,product,wms,P2,prd_3")) == 1
    assert exported(state) == sorted([ROWS[0], "platform,product,wms,P2,prd_3", ROWS[2]])


def test_the_file_must_be_there_and_csv(state: State, tmp_path: Path) -> None:
    """A missing file and one with other content are errors of the command."""
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        imported(state, tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="the first line must be target,resource,namespace,key,target_id"):
        imported(state, write(tmp_path, header="key,target_id"))
    (tmp_path / "b.csv").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not CSV in UTF-8"):
        imported(state, tmp_path / "b.csv")


def test_ids_that_a_spreadsheet_would_evaluate_come_back_exactly(state: State, tmp_path: Path) -> None:
    """An export that a spreadsheet can open safely, and a raw one, give the same keys and ids when imported."""
    path = tmp_path / "raw.csv"
    rows = ["platform,product,wms,-a,-5", "platform,product,wms,a%3B%3D1,@x", "platform,product,wms,-|-,+1"]
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    with state.begin() as tx:
        assert import_bindings(tx, path, {"platform": platform_target()}, at=AT, raw=True) == 3
    safe = exported(state)
    assert safe == sorted(
        ["platform,product,wms,'-a,-5", "platform,product,wms,a%3B%3D1,'@x", "platform,product,wms,'-|-,'+1"]
    )
    assert imported(state, write(tmp_path, *safe)) == 0
    with state.begin() as tx:
        assert import_bindings(tx, path, {"platform": platform_target()}, at=AT, raw=True) == 0


@pytest.mark.parametrize("key", ["2026/0001", "BANK CHARGES", "Müll", "5%", "0017"])
@pytest.mark.parametrize("written", ["as in the source", "as listed"])
def test_a_key_of_one_column_is_bound_as_its_stream_will_ask_for_it(
    state: State, tmp_path: Path, key: str, written: str
) -> None:
    """A key by hand, as it is in the source, and the listed one are the same record, so that none is created again."""
    listed = key_text([key])
    imported(state, write(tmp_path, f"platform,product,wms,{key if written == 'as in the source' else listed},x"))
    with state.begin_read_only() as tx:
        (binding,) = tx.bindings.get(PRODUCTS, [key_hashes([listed])[listed]]).values()
    assert binding.key == listed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.text(st.sampled_from("a0-=%|/ '+ä"), min_size=1), min_size=1, max_size=3))
def test_an_exported_key_is_imported_as_the_same(state: State, tmp_path: Path, parts: list[str]) -> None:
    """Whatever its columns hold, the row that an export writes is known already when it is imported."""
    key = key_text(parts)
    path = tmp_path / "raw.csv"
    path.write_text(f"{HEADER}\nplatform,product,wms,{key},x{key_hashes([key])[key]}\n", encoding="utf-8")
    with state.begin() as tx:
        import_bindings(tx, path, {"platform": platform_target()}, at=AT, raw=True)
    before = exported(state)
    assert any(row.split(",")[3].removeprefix("'") == key for row in before)
    assert (imported(state, write(tmp_path, *before)), exported(state)) == (0, before)


def test_a_namespace_that_the_config_only_names_is_known(state: State, tmp_path: Path) -> None:
    """Streams may refer to records that others have delivered, of a namespace in which none of them writes."""
    assert imported(state, write(tmp_path, "platform,product,erp,P1,x", "platform,product,wms+wms.stock,P1,y")) == 2


def test_a_file_of_a_spreadsheet_begins_with_a_byte_order_mark(state: State, tmp_path: Path) -> None:
    """It is not taken for a part of the first column."""
    assert imported(state, write(tmp_path, ROWS[0], header=f"\ufeff{HEADER}")) == 1
