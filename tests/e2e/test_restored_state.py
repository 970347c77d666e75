"""A state that comes back from a backup has forgotten what was delivered since."""

from __future__ import annotations

import shutil
from decimal import Decimal

from tests.e2e.warehouse import INVOICES, PRODUCTS, Site


def test_what_comes_after_a_restored_state_arrives(site: Site) -> None:
    """A record that was created in the lost period gets the updates of files that come after the restoring."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\n")
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.75\n")
    assert site.sync().code == 0

    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    effects = len(site.effects())
    for _ in range(2):
        stopped = site.sync()
        assert (stopped.code, len(site.effects())) == (4, effects)
        assert "crossdock state restored" in stopped.err
    assert site.run("state", "restored").code == 0
    site.export("PROD_4.csv", "SKU;NAME;PRICE\nP1;Bolt;1.80\nP3;Washer;0.06\n")
    assert site.sync().code == 0
    prices = {each["body"]["sku"]: Decimal(each["body"]["unitPrice"]) for each in site.effects("product")}
    assert prices == {"P1": Decimal("1.80"), "P2": Decimal("0.25"), "P3": Decimal("0.06")}, "the latest of each"
    site.export("PROD_5.csv", "SKU;NAME;PRICE\nP3;Washer;0.07\n")
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 1)
    assert site.names("product").count("wms:P3") == 1


def test_a_restored_state_creates_nothing_twice(site: Site) -> None:
    """Declared as restored, it finds again what can be looked up, leaves invoices to a person, and then is trusted."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)  # the run has ended, so all of it is in this one file
    site.export("PROD_2.csv", PRODUCTS + "P3;Washer;0.05\n")
    site.export("INV_2.csv", INVOICES + "4;C1;P3;1;0.05;EUR\n")
    assert site.sync().code == 0
    effects = len(site.effects())

    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    assert site.run("state", "restored").code == 0
    result = site.sync()
    assert (result.code, len(site.effects())) == (1, effects), "P3 was found, invoice 4 was not sent"
    assert result.records("products") == {"read": 3, "unchanged": 2, "suppressed": 1}
    for _ in range(2):
        (doubt,) = site.listed("--state", "in-doubt")
        assert (doubt["stream"], doubt["key"]) == ("wms.invoices", "4")
        assert "before the state was restored" in doubt["why"]
        assert (site.sync().code, len(site.effects())) == (1, effects), "a further sync does not send it either"

    (made,) = [each["id"] for each in site.effects("invoice") if len(each["body"]["items"]) == 1][-1:]
    assert site.run("records", "resolve", "wms.invoices", "4", "--delivered-as", made, "--yes").code == 0
    site.export("PROD_3.csv", PRODUCTS + "P4;Rivet;0.07\n")
    assert site.sync().json["requests"] == 2, "P4 is looked up first"
    effects += 1
    site.export("PROD_4.csv", PRODUCTS + "P5;Pin;0.01\n")
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 1), "trusted again: P5 is created without a look"
    assert len(site.effects()) == effects + 1
