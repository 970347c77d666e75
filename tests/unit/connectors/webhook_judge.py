"""What every connector's hints must be, whatever a webhook says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from crossdock.connector import Connector
from crossdock.errors import RecordError
from crossdock.values import exact_json
from crossdock.webhooks import Hint, Webhook, Webhooks

SECRETS = {"secrets": ["env:WEBHOOK_SECRET"]}
_TEXTS = ["", "7", "LAMP", "variable", "gid://shopify/Order/7", "gid://shopify/Customer/", "acme:7", "platform:7%2F8"]
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**18),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.sampled_from(_TEXTS),
    st.text(max_size=5),
)


def declared(connector: Connector[Any], settings: Any) -> Webhooks[Any]:
    """The webhooks that *connector* declares for *settings*, which accept some."""
    assert connector.webhooks is not None
    found = connector.webhooks(settings)
    assert found is not None
    return found


def settings_of(connector: Connector[Any], base: Mapping[str, Any], **more: Any) -> Any:
    """The settings of a connection with webhooks."""
    return connector.settings.model_validate({"kind": connector.name, **base, "webhooks": SECRETS, **more})


def bodies(members: Sequence[str]) -> st.SearchStrategy[Any]:
    """JSON values, whose objects often have some of *members*."""
    names = st.sampled_from(list(members)) | st.text(max_size=3)
    return st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
        max_leaves=12,
    )


def hints_of(connector: Connector[Any], settings: Any, topic: str, body: Any) -> list[tuple[str, ...]]:
    """Stream and key of each hint for *body*, as it comes over the wire."""
    read = exact_json.loads(exact_json.dumps(body))
    return [(each.stream, *each.key) for each in found(connector, settings, topic, read)]


def found(connector: Connector[Any], settings: Any, topic: str, body: Any) -> list[Hint]:
    return list(declared(connector, settings).hints(Webhook(topic, {}, body)))


def judge(connector: Connector[Any], settings: Any, topic: str, body: Any, empty: Sequence[str] = ()) -> None:
    """Any body gives `RecordError`, or hints that name streams of the connection by keys of their form.

    Args:
        empty: The streams whose keys may have empty parts.
    """
    keys = {stream.name: tuple(stream.key) for stream in connector.streams(settings)}
    try:
        hints = found(connector, settings, topic, body)
    except RecordError:
        return
    for hint in hints:
        assert len(hint.key) == len(keys[hint.stream])
        assert all(type(part) is str for part in hint.key)
        assert all(hint.key) or hint.stream in empty
