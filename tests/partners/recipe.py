"""A config of ``configs/`` with other addresses and credentials, between a sandbox and a fake vendor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.e2e.project_folder import in_process
from tests.partners.partner_server import Fault, Partner, PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.shop_recipe import charge
from tests.partners.stage import Project

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = {
    "name": "Harbour Lights",
    "line1": "1 Harbour Street",
    "city": "Hamburg",
    "line2": "Flat 4",
    "region": "HH",
    "postalCode": "20457",
    "country": "DE",
    "phone": "+49 40 123",
}


def now() -> ManualClock:
    """A clock that begins at the sandbox's time, so that waits take none."""
    return ManualClock(datetime.now(UTC))


@dataclass(frozen=True)
class Recipe:
    """Attributes:
    client: Of the platform, for what its users do.
    """

    project: Project
    clock: ManualClock
    server: PartnerServer
    client: httpx.Client

    def sync(self, after_s: float = 900) -> Report:
        """A sync that succeeds, *after_s* seconds after the last one."""
        self.clock.advance(after_s)
        report = self.project.sync()
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, self.project.dead_letters())
        return report

    def quiet(self) -> None:
        """A sync has no effect at all: neither the vendor nor the platform gets a write."""
        before = (len(self.server.partner.effects), len(self.effects()))
        self.sync()
        assert (len(self.server.partner.effects), len(self.effects())) == before

    def check(self) -> None:
        """`crossdock check` finds nothing wrong with this config, but for rates, whose waits would be real."""
        document = yaml.safe_load(self.project.config.read_text(encoding="utf-8"))
        for connection in document["connections"].values():
            if "rate" in connection:
                connection["rate"] |= {"per_minute": 600_000, "burst": 100}
        unpaced = self.project.config.with_name("unpaced.yaml")
        unpaced.write_text(yaml.safe_dump(document), encoding="utf-8")
        done = in_process(unpaced, "check", environment={})
        assert done.exit_code == 0, done.stdout + done.stderr

    def effects(self) -> list[dict[str, Any]]:
        """What happened at the platform, oldest first, but for the products of charges, which were there before."""
        answer = self.client.get("/_sandbox/effects", params={"limit": "10000"})
        effects = [dict(each) for each in answer.json()["data"]]
        return [each for each in effects if not str(each["body"].get("externalId")).startswith("charges:")]

    def lose_answers_of_platform(self, share: float) -> None:
        """The platform carries writes out, and this *share* of its answers never arrives."""
        fault = {"name": "lost_answer", "probability": share, "route": "POST"}
        answer = self.client.post("/_sandbox/faults", json={"faults": [fault], "seed": 7})
        assert answer.is_success, answer.text

    def answers_lost_by_platform(self) -> int:
        return int(self.client.get("/_sandbox/faults").json()["faults"][0]["struck"])

    def created(self, path: str, **members: Any) -> str:
        """The id of a new record of the platform."""
        answer = self.client.post(f"/api/v1/{path}", json=members)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def changed(self, path: str, **members: Any) -> None:
        headers = {"content-type": "application/merge-patch+json"}
        answer = self.client.patch(f"/api/v1/{path}", json=members, headers=headers)
        assert answer.status_code == 200, answer.text

    def stored(self, path: str) -> dict[str, Any]:
        answer = self.client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def released_order(self, external_id: str, quantity: int = 3) -> str:
        """The id of an order of the platform that is to be shipped."""
        customer = self.created("sales/customers", externalId=f"shop:{external_id}", name="Harbour Lights")
        product = self.created("catalog/products", externalId=f"shop:{external_id}", sku="LAMP", name="Storm lantern")
        about = {"currency": "EUR", "placedAt": "2026-11-20T08:15:00Z", "status": "released"}
        lines = [{"productId": product, "quantity": quantity, "unitPrice": 12.5}]
        return self.created(
            "sales/orders",
            externalId=f"shop:{external_id}",
            customerId=customer,
            items=lines,
            shippingAddress=ADDRESS,
            **about,
        )


class _AtTime(PartnerServer):
    """A server whose answers have the date of *clock*."""

    def __init__(self, partner: Partner, clock: ManualClock) -> None:
        super().__init__(partner)
        self._clock = clock

    def respond(self, request: PartnerRequest) -> PartnerAnswer | None:
        answer = super().respond(request)
        date = format_datetime(self._clock.now(), usegmt=True)
        return None if answer is None else replace(answer, headers={"date": date, **answer.headers})


def requests_of(server: PartnerServer, method: str, path: str) -> list[tuple[PartnerRequest, Fault]]:
    """The requests with this method whose path begins so, and the fault that each had."""
    return [each for each in server.requests if each[0].method == method and each[0].path.startswith(path)]


@contextmanager
def opened(
    folder: Path, config: str, partner: Partner, clock: ManualClock, changes: Mapping[str, Any]
) -> Iterator[Recipe]:
    """A recipe with its vendor and platform at work.

    Args:
        config: Of ``configs/``.
        changes: Of connections, by name; the vendor's address is ``URL``, and the beginning of that of its tokens.
    """
    text = (ROOT / "configs" / config).read_text(encoding="utf-8")
    limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
    with SandboxServer(folder / "sandbox", limits) as sandbox, serving(_AtTime(partner, clock)) as server:
        for kind in sorted(set(re.findall(r"\$\{\w+_PRODUCT:-(\w+)\}", text))):
            text = text.replace(f"${{{kind.upper()}_PRODUCT:-{kind}}}", charge(sandbox, kind))
        connections = _merged(yaml.safe_load(text)["connections"], _at(changes, server.url))
        headers = {"authorization": f"Bearer {sandbox.api_key}", "x-tenant-slug": sandbox.tenant}
        with httpx.Client(base_url=sandbox.base_url, headers=headers, trust_env=False) as client:
            yield Recipe(Project(folder, sandbox, connections, clock), clock, server, client)


def _at(value: Any, url: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _at(each, url) for name, each in value.items()}
    return value.replace("URL", url) if isinstance(value, str) and value.startswith("URL") else value


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {**old, **{name: _merged(old.get(name), each) for name, each in new.items()}}
