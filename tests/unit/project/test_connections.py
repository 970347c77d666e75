"""Connections of a config file: connectors, settings and the streams of code are checked when it is loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PIN

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.project import Project, load
from crossdock.connector import Connector, Context, Settings, Stream
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import Mode, OnGone
from crossdock.resources import Reference, ResourceName
from crossdock.sources import Api
from crossdock.targets import ApiTarget
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import RawBatch, Record

Load = Callable[[Sequence[Stream[Any]], str], Project]


class InCode(Stream[Any]):
    """A stream whose facts are declared in code."""

    name, key = "things", ("K",)
    resource: ResourceName = "product"

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("the tests read nothing")

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("the tests map nothing")


@pytest.fixture
def load_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a config whose connections have the given streams."""

    def load_config(streams: Sequence[Stream[Any]], connections: str = "w: {kind: made}") -> Project:
        connector = Connector("made", "Made", Settings, lambda _settings: streams)
        monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _kind: connector)
        config = tmp_path / "c.yaml"
        platform = f"{{base_url: {PIN.base_url}, tenant: acme, auth: {{kind: api_key, token: env:NOBODY}}}}"
        config.write_text(f"platform: {platform}\nconnections: {{{connections}}}\n")
        return load(config)

    return load_config


@pytest.mark.parametrize(
    ("resource", "mode", "on_gone", "message"),
    [
        ("invoice", "snapshot", "delete", "invoice"),
        ("product", "append", "archive", "mode: snapshot"),
        ("product", "incremental", "delete", "mode: snapshot"),
        ("customer", "snapshot", "archive", "customer has no member active"),
        ("warehouse_bin", "snapshot", "archive", None),
        ("order", "snapshot", "delete", None),
        ("invoice", "append", "nothing", None),
    ],
)
def test_removals_of_streams_in_code_are_checked(
    resource: ResourceName, mode: Mode, on_gone: OnGone, message: str | None, load_with: Load
) -> None:
    """What a config cannot declare, a connector cannot either; the config does not load."""
    stream = InCode()
    stream.resource, stream.mode, stream.on_gone = resource, mode, on_gone
    if message is None:
        assert load_with([stream], "w: {kind: made}").connections[0].streams == (stream,)
    else:
        with pytest.raises(ConfigError, match=f"w.things: on_gone .*{message}"):
            load_with([stream], "w: {kind: made}")


def test_a_stream_without_a_name_is_refused(load_with: Load) -> None:
    """An author may forget it; the message has the place of the class."""

    class Nameless(Stream[Any]):
        resource, key, pull, to_resource = "product", ("K",), InCode.pull, InCode.to_resource

    with pytest.raises(ConfigError, match=r"(?s)w\.: not a valid stream name.*fix class Nameless, line"):
        load_with([Nameless()], "w: {kind: made}")


def test_two_streams_of_one_name_are_refused(load_with: Load) -> None:
    """They would share a cursor and the files that were read; the records of one were never delivered."""
    other = InCode()
    other.namespace = "old"
    with pytest.raises(ConfigError, match=r"c.yaml:2:15: w.things: the connector has two streams of this name"):
        load_with([InCode(), other], "w: {kind: made}")


def test_an_unknown_resource_is_refused(load_with: Load) -> None:
    """The message has the stream, its place and the nearest resource."""
    stream = InCode()
    stream.resource = "produkt"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match=r"c.yaml:2:15: w.things: unknown resource 'produkt'; did you mean 'product'"):
        load_with([stream], "w: {kind: made}")


def test_one_stream_creates_the_records_of_a_namespace(load_with: Load) -> None:
    """Two connections with the same namespace and resource need different namespaces."""
    with pytest.raises(ConfigError, match="b.things and a.things both write product in namespace 'n'") as refused:
        load_with([InCode()], "a: {kind: made, namespace: n}, b: {kind: made, namespace: n}")
    assert "set namespace in one of the streams or connections" in str(refused.value)
    project = load_with([InCode()], "a: {kind: made}, b: {kind: made}")
    assert [connection.namespace for connection in project.connections] == ["a", "b"]


def test_another_namespace_of_a_connection_reads_everything_again(load_with: Load) -> None:
    """Under it, nothing was sent; the name of the connection is what it has anyway, and other connections stay."""
    project = load_with(
        [InCode()],
        "a: {kind: made}, b: {kind: made, namespace: b}, c: {kind: made, namespace: live}, d: {kind: made}",
    )
    default, same, other, after = [connection.streams[0].version for connection in project.connections]
    assert default == same == after == InCode().version
    assert other not in {
        default,
        load_with([InCode()], "c: {kind: made, namespace: x}").connections[0].streams[0].version,
    }


def test_two_streams_of_one_resource_have_two_namespaces(load_with: Load) -> None:
    """A reference without a namespace means the stream's own for its own resource, else the connection's."""
    first, second = InCode(), InCode()
    second.name, second.namespace = "others", "old"
    project = load_with([first, second], "a: {kind: made}")
    (connection,), targets = project.connections, project.targets(ManualClock())
    bound = [
        connection.bind_stream(name, stream, targets, None)  # type: ignore[arg-type]  # not used
        for name, stream in connection.enabled_streams_with_full_names()
    ]
    assert {each.target for each in bound} == {targets["platform"]}
    assert [(each.name, each.namespace, each.scope.namespace) for each in bound] == [
        ("a.things", "a", "a"),
        ("a.others", "old", "old"),
    ]
    assert [each.namespace_and_key_of_reference(Reference("product", "1")) for each in bound] == [
        ("a", "1"),
        ("old", "1"),
    ]
    assert [each.namespace_and_key_of_reference(Reference("customer", "1")) for each in bound] == [
        ("a", "1"),
        ("a", "1"),
    ]


def test_streams_have_full_names(load_with: Load) -> None:
    """``CONNECTION.STREAM`` names a stream in a selection; an unknown name is refused with the nearest one."""
    project = load_with([InCode()], "a: {kind: made}, b: {kind: made}")
    assert project.selected_streams([]) == {"a.things", "b.things"}
    assert project.selected_streams(["a"]) == project.selected_streams(["a.things"]) == {"a.things"}
    with pytest.raises(ConfigError, match="no stream or connection is called 'a.thing'; did you mean 'a.things'"):
        project.selected_streams(["a.thing"])


def test_kind_is_required(load_with: Load) -> None:
    """The message lists the installed connectors."""
    with pytest.raises(ConfigError, match=r"c.yaml:2:15: connections.w: kind is missing; installed: .*sftp_warehouse"):
        load_with([InCode()], "w: {namespace: n}")


class PlainSettings(Settings):
    """Settings of a connector whose author checks no address."""

    login_url: str = ""
    note: str = ""
    extra: dict[str, list[str]] = {}


@pytest.mark.parametrize(
    ("members", "place", "message"),
    [
        ("login_url: 'https://u:canary@shop.example'", "connections.w.login_url", "a user or a password"),
        ("note: 'https://canary@shop.example/'", "connections.w.note", "a user or a password"),
        ("extra: {a: [b, 'http://u:canary@127.0.0.1']}", "connections.w.extra.a.1", "a user or a password"),
        ("login_url: 'http://canary.example'", "connections.w.login_url", "must be https"),
        ("login_url: 'https://shop.example?token=canary'", "connections.w.login_url", "must not contain a credential"),
    ],
)
def test_unsafe_addresses_are_refused_in_all_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: str, place: str, message: str
) -> None:
    """The error has the place in the config, and never the value, whatever the connector's author declared."""
    connector: Connector[Any] = Connector("made", "Made", PlainSettings, lambda _settings: ())
    monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _kind: connector)
    config = tmp_path / "c.yaml"
    platform = f"{{base_url: {PIN.base_url}, tenant: acme, auth: {{kind: api_key, token: env:NOBODY}}}}"
    config.write_text(f"platform: {platform}\nconnections: {{w: {{kind: made, {members}}}}}\n")
    with pytest.raises(ConfigError, match=message) as refused:
        load(config)
    assert place in str(refused.value)
    assert "canary" not in str(refused.value)


class OnlyRead(Stream[Any]):
    """Lacks the other method."""

    name, resource, key, pull = "things", "product", ("K",), InCode.pull


def only_read() -> Any:
    kind: Any = OnlyRead
    return kind()


def unnamed() -> InCode:
    stream = InCode()
    stream.name = None  # type: ignore[assignment]
    return stream


def without_resources() -> Any:
    """A target that has forgotten what it takes."""
    bare: Any = type("Bare", (ApiTarget,), {"resources": ()})
    bare.__abstractmethods__ = frozenset()
    return bare()


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"settings": None}, "settings of a Connector must be a class that extends Settings"),
        ({"streams": None}, "streams of a Connector must be a function"),
        ({"api": Api("https://shop.example.com")}, "api of a Connector must be a function"),
        ({"streams": lambda _: None}, "streams returned None instead of a tuple of streams such as .*; see line "),
        (
            {"streams": lambda _: [InCode]},
            "streams returned the class InCode, and no object made by it, instead of a tuple",
        ),
        ({"streams": lambda: ()}, "streams raised TypeError in streams, line .*takes 0 positional arguments but 1 was"),
        (
            {"streams": lambda _: [only_read()]},
            "to_resource or map is missing: what its records become\n.*fix class OnlyRead, line ",
        ),
        ({"streams": lambda _: [unnamed()]}, "not a valid stream name; .*\n.*fix class InCode, line "),
        ({"target": lambda: None}, "target raised TypeError in target, line .*takes 0 positional arguments but 1 was"),
        ({"target": lambda _: "shop"}, "target returned str instead of an ApiTarget; see line "),
        ({"target": lambda _: without_resources()}, "target returned Bare instead of a target whose resources are "),
    ],
)
def test_wrong_facts_of_a_connector_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], told: str
) -> None:
    """Nothing begins, and the message says which of them is wrong."""
    module = types.ModuleType("odd_connector")
    made: dict[str, Any] = {"name": "odd", "title": "Odd", "settings": Settings, "streams": lambda _: (), **facts}
    vars(module)["__getattr__"] = lambda _: Connector(**made)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = [EntryPoint("odd", "odd_connector:CONNECTOR", Connector.group)]
    monkeypatch.setattr(connections_and_bound_streams, "entry_points", lambda group: points)
    config = tmp_path / "c.yaml"
    platform = f"{{base_url: {PIN.base_url}, tenant: acme, auth: {{kind: api_key, token: env:NOBODY}}}}"
    config.write_text(f"platform: {platform}\nconnections: {{w: {{kind: odd}}}}\n")
    with pytest.raises(ConfigError, match=f"(?s){told}"):
        load(config)
