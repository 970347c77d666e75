"""The section ``target`` of a warehouse refuses names that would not be handed over safely, with place and advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.config.project import project
from crossdock.errors import ConfigError

READY = (Path(__file__).parents[3] / "configs" / "warehouse_exchange.yaml").read_text("utf-8")
ORDERS, FOLDER = "        orders:\n          members", "          folder: in\n"
NUMBER, OTHER = "must be a file name with {number}", "must be another name than"
WRONG = (
    ("_{number:6}.csv", ".csv", f"orders.file: {NUMBER}"),
    ("ord_{at", "../ord_{at", f"orders.file: {NUMBER}"),
    (FOLDER, FOLDER + '          temporary: "{name}"\n', "orders.temporary: must be a file name with {name} and more"),
    (FOLDER, FOLDER + '          temporary: "{stem}"\n', "orders.temporary: must be a file name with {name} and more"),
    (FOLDER, FOLDER + '          marker: "{name}"\n', f"orders.marker: {OTHER} that of the file"),
    (FOLDER, FOLDER + '          marker: ".{name}.part"\n', f"orders.marker: {OTHER} the temporary one"),
    (FOLDER, FOLDER + "          marker: done\n", "orders.marker: must be a file name with {name} or {stem}"),
    ("folder: in\n", "folder: in/../..\n", "orders.folder: must not lead upwards"),
    ("[in/archive]", "[../archive]", "orders.taken: must not lead upwards"),
    ("name: order_id", "name: purchase_order", "orders.name: holds the external id of the record"),
    ("ship_to.postal_code?", "ship_to.pstcode?", "orders.content: shows ship_to.pstcode, and members has no such"),
    ("each: lines", "each: items", "orders.content: shows items, and members has no such member"),
    ("create: NEW, ", "", "orders.content: cannot express a new record"),
    ("delete: CANCEL", "archive: CANCEL", "orders_out.on_gone: delete is impossible: orders has no delete"),
    (ORDERS, ORDERS.replace("orders", "acknowledgements"), "is the name for what the partner acknowledges"),
    ("Europe/Berlin", "Europe/Berln", "target.timezone: 'Europe/Berln' is not an IANA time zone"),
    ("within: 20h", "within: 20", "acknowledged.within: '20' is not an interval"),
)


def test_a_wrong_target_is_refused_where_it_is_wrong(tmp_path: Path) -> None:
    """The ready config loads; each of these changes of it does not, and the message names the key."""
    config = tmp_path / "c.yaml"
    config.write_text(READY)
    assert project.load(config).connections
    for old, new, message in WRONG:
        assert READY.count(old) == 1, old
        config.write_text(READY.replace(old, new))
        with pytest.raises(ConfigError) as wrong:
            project.load(config)
        assert message in str(wrong.value), new
