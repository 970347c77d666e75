"""Config files that nobody means well with, and what must become of each: it loads, or it is refused with its place.

``python -m tests.hostile_configs 200 9`` tries so many, and so many bombs, and prints the most memory that they took.
"""

from __future__ import annotations

import copy
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory import peak_kib

from crossdock.config.project import project
from crossdock.config.project.masked_effective_config import effective_config
from crossdock.errors import ConfigError
from crossdock.reading.transport.file_store import matches_pattern, split_pattern
from crossdock.runs.platform_source.streams import PlatformStream
from crossdock_connectors.http_json.streams import HttpJsonStream
from crossdock_connectors.warehouse.settings_and_streams import WarehouseStream

ROOT = Path(__file__).parents[1]
MAX_BYTES = 400_000_000
_PLACE = re.compile(r"c\.yaml:[0-9]+:[0-9]+: ")
_WHOLE_FILE = ("is empty or not a mapping of sections", "is larger than")  # what has no line and column

COMPARED_SNAPSHOTS = """
jobs:
  nightly:
    streams: [wms.a]
    schedule: {time_zone: Europe/Berlin, at: ["02:30"], days: [weekdays], holidays: [2026-12-25]}
    done_by: "06:00"
  later:
    schedule: {time_zone: UTC, every: 6h, blackouts: [{from: "22:00", to: "23:00"}]}
    after: [nightly]
notify:
  when: [failed]
  webhook: {url: "https://chat.example.com/hook", secret: env:HOOK}
  email: {host: mail.example.com, port: 587, tls: starttls, user: u, password: env:P, sender: a@b.c, to: [d@e.f]}
"""
STREAMS = """
connections:
  wms:
    kind: folder_warehouse
    path: exports
    namespace: other
    sources: {all: {files: "out/*.csv", wait: {until: "05:00", poll: 60s}}}
    streams:
      a:
        files: "out/A_[0-9]*.txt"
        mode: snapshot
        format: {delimiter: "|", encoding: cp1252, names: [SKU, DAY], header: false, trailer: {prefix: T, count: 1}}
        key: [SKU]
        resource: product
        on_gone: archive
        gone: {at_most: 3, at_most_percent: 1.5}
        columns: {SKU: {strip: both, "null": "NULL"}}
        skip: {test: {field: SKU, one_of: [A, B]}}
        map: {sku: SKU, name: {template: "Item {SKU}"}, unitPrice: {const: 0.5}}
      b:
        source: all
        mode: append
        key: [NR]
        group_by: [NR]
        resource: order
        map:
          customerId: {ref: customer, key: [C, D], namespace: shop}
          currency: {const: EUR}
          placedAt: {from: DAY, as: instant, format: "%d.%m.%Y %H:%M", timezone: Europe/Berlin, empty: "00"}
          items: {each: {productId: {ref: product, key: SKU}, quantity: {from: Q, as: decimal, decimal_mark: ","},
            unitPrice: PRICE}}
"""
PLATFORM = """
platform:
  base_url: https://api.example.com
  tenant: acme
  auth: {kind: oauth2_client_credentials, client_id: me, client_secret: env:S, token_url: "https://a.b/t", scopes: [x]}
  rate: {per_minute: 600, burst: 5, shared: "sqlite:///rate.db"}
  after_ambiguous: {order: verify, invoice: park}
  idempotency: {header: Idempotency-Key, kept_s: 86400}
  retry: {attempts: 6, base_s: 0.5}
  http: {total_timeout_s: 60.5, ca_file: ca.pem}
  paths: {customer: /api/v1/customers}
state: sqlite:///acme.db
spool: spool
connections: {wms: {kind: folder_warehouse, path: x, streams: {a: {files: a, mode: append, key: [K], resource: customer,
  map: {name: N}}}}}
"""
LEAST = """
platform: {base_url: https://a.b, tenant: t, auth: {kind: api_key, token: env:T}}
connections: {wms: {kind: folder_warehouse, path: x, streams: {a: {files: a, mode: append, key: [K], resource: customer,
  map: {name: N}}}}}
"""


def wholes() -> list[Any]:
    """Right configs: those of the project, and small ones that have every section."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "configs").glob("*.yaml"))]
    least = yaml.safe_load(LEAST)
    parts = [least | yaml.safe_load(text) for text in (COMPARED_SNAPSHOTS, STREAMS, PLATFORM)]
    return [*found, *parts, least]


TEXTS = [
    "", " ", "~", "~nobody-here/x", "/", "..", "*", "[", "[!]", "out/[z-a]*", "**/x", "(", "\\", "a" * 300, "%", "%Y%Y",
    "%Y-%", "%j%U", "%G%V", "%Q", "%%", "%c", "%z%Z", "localtime", "posixrules", "Factory", "../etc/passwd",
    "/etc/localtime", "posix/UTC", "env:", "env:A=B", "file:", "file:/dev/zero", "postgresql://u@[::1/db",
    "postgresql://h:x/d", "postgresql://u:p@h/d", "postgresql://a,b/d?port=1", "postgresql:///d?host=a:x&host=b",
    "sqlite:///~nobody-here/x", "sqlite://h/x", "sqlite:///x?mode=ro", "sqlite:///a%00b", "foo://x", "http://[::1",
    "https://a:b@c", "https://h:99999", "https://h:x", "é", "\u202e", "{", "{A}{", "{0}", "<<", "=", "1e5", "a b",
    "a.b", "a/b", "punycode", "idna", "cp1252", "undefined", "\x85", "\ufeff", "SHA256:x", "25:00", "0s", "99999d",
    "2026-02-30", "SKU", "nightly", "wms", "wms.a", "customer", "snapshot", "delete", "x" * 20_000,
    "${", "$${A}", "${PATH}", "${NONE}", "${NONE:-}", "${NONE:-a: [b}", "$", "x-", "tab", r"\t", "null",
]  # fmt: skip
RAW = [  # YAML that no dumper writes
    "1.0e+999999999", "-1.0e-999999999", "0.0e+400000000", ".inf", ".nan", "1" * 5000, "1" * 30, "0x" + "f" * 60,
    "1:" * 15 + "1", "1:" * 9000 + "1", "1_0.5", '"\\0"', '"\\ud800"', '"\\UFFFFFFFF"', '"\\x"', "!!int x", "!!int ''",
    "!!float x", "!!binary AA==", "!!binary '*'", "!!bool x", "!!timestamp x", "!!null x", "!!set {a}", "!!omap [a: b]",
    "!!str [a]", "!!python/name:os.system", "!%ff x", "!x!y z", "2026-13-41", "2026-01-01T25:00:00", "0000-01-01",
    "2026-01-01T01:00:00+99:99", "9999-12-31T23:59:59-12:00", "&a [*a]", "&a {k: *a}", "&a {*a : 1}", "*a", "&b x",
    "{? [a] : b}", "{<<: {a: b}}", "{<<: x}", "{<<: [{a: b}, {c: d}]}",
    "&m {<<: *m}", "{<<: [[[]]]}", "{x-a: b}", "0017", "12:30", "NO", "{null: x}", "{NO: x}", "${PATH}",
    "{1: 2}", "[" * 600, "{a: " * 300, "[" * 100 + "]" * 100, "\t", "@", "`", "%", "- -",
    "[&x [a, a], &y [*x, *x], &z [*y, *y], *z]", "!!merge x", "=", "<<", "? ", "| \n x", "'", '"', "#", "&", "*",
    "{" + ", ".join(f"k{n}: " for n in range(2000)) + "}",
]  # fmt: skip


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from _paths(each, (*path, key))


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    whole = copy.deepcopy(draw(st.sampled_from(wholes())))
    raw: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        paths = list(_paths(whole))
        if not paths:
            break
        *way, last = draw(st.sampled_from(paths))
        parent = whole
        for step in way:
            parent = parent[step]
        match draw(st.sampled_from(["text", "raw", "plain", "delete", "rename", "copy"])):
            case "text":
                parent[last] = draw(st.sampled_from(TEXTS) | st.text(max_size=12))
            case "raw":
                parent[last] = f"RAW{len(raw)}WAR"
                raw.append(draw(st.sampled_from(RAW)))
            case "plain":
                parent[last] = draw(_PLAIN)
            case "delete":
                del parent[last]
            case "rename" if isinstance(parent, dict):
                parent[draw(st.sampled_from(TEXTS) | st.text(max_size=12))] = parent.pop(last)
            case _:
                source = whole
                for step in draw(st.sampled_from(paths)):
                    source = source[step]
                parent[last] = copy.deepcopy(source)
    text = yaml.safe_dump(whole, allow_unicode=True, sort_keys=False)
    for number, snippet in enumerate(raw):
        text = text.replace(f"RAW{number}WAR", snippet)
    return text


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.dates()
    | st.datetimes()
    | st.binary(max_size=3)
    | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS), inner, max_size=3),
    max_leaves=5,
)
_YAML_LIKE = st.lists(
    st.sampled_from([*RAW, *"abc:-[]{},&*!|>'\"%@`#?~ \n\t\r", ": ", "\n  ", "- ", "platform", "&a ", "*a", "---\n"])
    | st.characters(),
    max_size=40,
).map("".join)


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    text = draw(_mutated())
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(_YAML_LIKE) + text[at + draw(st.integers(0, 20)) :]


HOSTILE = _mutated() | _damaged() | _YAML_LIKE


PARTNER_STREAMS = {
    "products", "locations", "stock", "shipments", "receipts", "departures", "bills", "customers", "orders", "invoices",
}  # fmt: skip


def judge(content: bytes, folder: Path) -> str | None:
    """Load *content* as ``crossdock check`` and ``config show`` do, without a network; the refusal, None if it loads.

    Any error but `ConfigError`, and one without its place, is a defect.
    """
    path = folder / "c.yaml"
    path.write_bytes(content)
    try:
        effective_config(path)
        _used(project.load(path))
    except ConfigError as error:
        said = str(error)
        assert _PLACE.search(said) or any(words in said for words in _WHOLE_FILE), said
        said.encode()
        return said
    return None


def _used(loaded: project.Project) -> None:
    dict(loaded.platform.assumptions())
    for connection in loaded.connections:
        for stream in connection.streams:
            assert stream.version
            if isinstance(stream, WarehouseStream):
                _, pattern = split_pattern(stream.files, folders=True)
                matches_pattern("A_1.txt", pattern)
            elif not isinstance(stream, HttpJsonStream | PlatformStream):
                assert stream.name in PARTNER_STREAMS


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
_JOBS = f"{LEAST.strip()}\njobs:"
BOMBS = {  # what takes the most memory for its size; the quick ones first
    "billion laughs": LAUGHS,
    "billion merges": "a: &a {}\n"
    + "".join(
        f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "a variable, repeated": f"a: {'${PATH}' * 140_000}",
    "a long text, repeated": f"a: &a {'x' * 900_000}\nb: [{'*a,' * 10_000}]",
    "half a million brackets": f"a: {'[' * 500_000}",
    "a line of blanks": f"a: {' ' * 1_000_000}b",
    "many long findings": f"{_JOBS} {{a: {{schedule: {{at: [{', '.join(['&x ' + 'x' * 400, *['*x'] * 9_000])}]}}}}}}",
    "anchors": f"a: [{','.join(f'&a{number} x' for number in range(45_000))}]",
    "a list of half a million": f"a: [{'x,' * 500_000}]",
    "many sections": "\n".join(f"k{number}: v" for number in range(45_000)),
    "many findings": f"{_JOBS} {{{','.join(f'k{number}: 1' for number in range(45_000))}}}",
}


def right_configs_load() -> None:
    """Each of `wholes` is taken."""
    with tempfile.TemporaryDirectory() as folder:
        for whole in wholes():
            refused = judge(yaml.safe_dump(whole, sort_keys=False).encode(), Path(folder))
            assert refused is None, refused


def no_bomb_goes_off(number: int) -> None:
    """Each of the first *number* of `BOMBS` is refused."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in list(BOMBS.items())[:number]:
            assert judge(text.encode(), Path(folder)), name


def every_document_is_judged(examples: int) -> None:
    """Each of so many hostile documents loads or is refused with its place.

    A file that holds NUL or half a character as such is damaged; YAML escapes of them are drawn from `RAW`.
    """
    with tempfile.TemporaryDirectory() as folder:

        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(HOSTILE)
        def one(text: str) -> None:
            judge(text.encode("utf-8", "surrogatepass"), Path(folder))

        one()


def in_bounded_memory(examples: int, bombs: int) -> None:
    """As `every_document_is_judged` and `no_bomb_goes_off`, in a process that takes at most `MAX_BYTES`."""
    command = [sys.executable, "-m", "tests.hostile_configs", str(examples), str(bombs)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["bytes"] <= MAX_BYTES


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (4_000_000_000, 4_000_000_000))  # what goes wrong spares the machine
    no_bomb_goes_off(int(sys.argv[2]))
    every_document_is_judged(int(sys.argv[1]))
    print(json.dumps({"bytes": peak_kib() * 1024}))
