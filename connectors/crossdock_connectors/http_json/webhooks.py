"""The section ``webhooks`` of a config, which says who signs them and which records each one names, and what it
declares.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel
from crossdock.sources import Name
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.json_paths import is_pointer
from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme, WebhookSettings
from crossdock_connectors.http_json.credential_settings import HeaderName


def _checked_json_pointer(text: str) -> str:
    if not is_pointer(text):
        raise ValueError("must be a JSON pointer such as /order/id, or empty for the whole")
    return text


Pointer = Annotated[str, AfterValidator(_checked_json_pointer)]


class HintRule(ConfigModel):
    """Which records of one stream a webhook is about."""

    stream: Name
    """A stream of this connection."""
    topics: tuple[str, ...] = ()
    """The topics of such webhooks; by default all."""
    key: Pointer | Annotated[tuple[Pointer, ...], Field(min_length=1)]
    """Where the body has the columns of the stream's key, in their order: texts or whole numbers."""
    each: Pointer | None = None
    """A list in the body: each of its elements names a record, and ``key`` begins there."""

    @property
    def key_pointers(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key

    def hints(self, webhook: Webhook) -> Iterator[Hint]:
        for part in (webhook,) if self.each is None else webhook.each(self.each):
            yield Hint(self.stream, tuple(part.identifier(pointer) for pointer in self.key_pointers))


class HttpJsonWebhooks(WebhookSettings):
    """The webhooks that an API sends."""

    scheme: WebhookScheme = WebhookScheme()
    """How they are signed; by default as Standard Webhooks 1.0 says."""
    topic_header: HeaderName | None = None
    """The header that names the topic."""
    topic_member: Pointer | None = None
    """Where the body names the topic, if no header does."""
    hints: Annotated[tuple[HintRule, ...], Field(min_length=1)]
    """The records that webhooks are about: a list of rules."""

    @model_validator(mode="after")
    def _check_topics_have_place(self) -> Self:
        if self.topic_header is None and self.topic_member is None:
            for number, rule in enumerate(self.hints):
                if rule.topics:
                    raise make_pydantic_error_at_key(("hints", number, "topics"), "needs topic_header or topic_member")
        return self


def raise_if_hint_rule_is_unusable(
    webhooks: HttpJsonWebhooks, keys: Mapping[str, Sequence[str]], fetching: Container[str]
) -> None:
    """Check that each hint names a stream with ``fetch``, and as many pointers as its key has columns."""
    for number, rule in enumerate(webhooks.hints):
        place = ("webhooks", "hints", number)
        if rule.stream not in keys:
            near = get_close_matches(rule.stream, keys, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(keys)) or 'none'}"
            raise make_pydantic_error_at_key(
                (*place, "stream"), f"no stream of this connection is called {rule.stream!r}; {advice}"
            )
        if rule.stream not in fetching:
            message = (
                f"the stream {rule.stream} needs fetch, the path of one record, to be read when a webhook names it"
            )
            raise make_pydantic_error_at_key((*place, "stream"), message)
        columns = keys[rule.stream]
        if len(rule.key_pointers) != len(columns):
            message = f"needs a pointer for each column of the key: {', '.join(columns)}"
            raise make_pydantic_error_at_key((*place, "key"), message)


def webhook_declaration(declared: HttpJsonWebhooks) -> Webhooks[Any]:
    return Webhooks(
        [declared.scheme],
        declared.secrets,
        partial(_hints_of_matching_rules, declared.hints),
        topic_headers=() if declared.topic_header is None else (declared.topic_header,),
        topic_member=declared.topic_member or "",
        topics=tuple(dict.fromkeys(topic for rule in declared.hints for topic in rule.topics)),
    )


def _hints_of_matching_rules(rules: Sequence[HintRule], webhook: Webhook) -> Iterator[Hint]:
    for rule in rules:
        if not rule.topics or webhook.topic in rule.topics:
            yield from rule.hints(webhook)
