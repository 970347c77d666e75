"""Shopify's webhooks, and the app's subscriptions to them over HTTPS.

Sources: shopify.dev/docs/apps/build/webhooks/verify-deliveries (the signature; ``X-Shopify-Webhook-Id`` is the same in
each attempt, while one ``X-Shopify-Event-Id`` is that of several webhooks), shopify.dev/docs/api/webhooks (the topics
and their bodies), shopify.dev/docs/apps/build/events/delivery-structure (deliveries of Events: the topic is a type, the
headers may have no ``X-``, and the body names records by ``query_variables``), the published Admin schema of version
2026-10 (subscriptions). Webhooks are signed with the app's client secret, which the API does not return. Shopify
refuses a second subscription to a topic at the same address. Those in the app's own configuration file are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from crossdock import RecordError
from crossdock.errors import RemoteError
from crossdock.reading.sources.errors_in_api_answers import redacted_error_message_in_json
from crossdock.sources import GraphQLError
from crossdock.values.json_access import JsonAccess
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.webhooks import Hint, Subscription, SubscriptionApi, Webhook, Webhooks, created_once, read_subscription
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    ShopifyContext,
    number_in_gid_or_empty,
    request_graphql,
    request_pages,
)
from crossdock_connectors.shop.shopify.scopes import APPROVAL
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.streams import CREDIT_NOTE
from crossdock_connectors.shop.webhooks import body_signature_scheme, guest_hint, order_and_invoice_hints

_PAGE = 100
_FIELDS = "id topic uri"
LIST_SUBSCRIPTIONS_QUERY = f"""query webhookSubscriptions($first: Int!, $after: String) {{
  webhookSubscriptions(first: $first, after: $after) {{ nodes {{ {_FIELDS} }} pageInfo {{ hasNextPage endCursor }} }}
}}"""
CREATE_SUBSCRIPTION_MUTATION = f"""\
mutation webhookSubscriptionCreate($topic: WebhookSubscriptionTopic!, $address: String!) {{
  webhookSubscriptionCreate(topic: $topic, webhookSubscription: {{ uri: $address, format: JSON }}) {{
    webhookSubscription {{ {_FIELDS} }} userErrors {{ field message }}
  }}
}}"""
DELETE_SUBSCRIPTION_MUTATION = """mutation webhookSubscriptionDelete($id: ID!) {
  webhookSubscriptionDelete(id: $id) { deletedWebhookSubscriptionId userErrors { field message } }
}"""

SCOPE_BY_TOPIC_RESOURCE = {
    "customers": "read_customers",
    "fulfillments": "read_fulfillments",
    "inventory_items": "read_inventory",
    "inventory_levels": "read_inventory",
    "locations": "read_locations",
    "orders": "read_orders",
    "products": "read_products",
    "refunds": "read_orders",
}
"""A scope that the topics of a resource need, from the descriptions of the topics in the schema."""
_RESOURCES = (  # those with "_" in their names
    "app_purchases_one_time", "app_subscriptions", "audit_events", "bulk_operations", "collection_listings",
    "collection_publications", "company_contact_roles", "company_contacts", "company_locations",
    "customer_account_settings", "customer_groups", "customer_payment_methods", "customers_email_marketing_consent",
    "customers_marketing_consent", "customers_whats_app_marketing_consent", "delivery_promise_settings",
    "draft_orders", "finance_app_staff_member", "finance_kyc_information", "fulfillment_events",
    "fulfillment_holds", "fulfillment_orders", "inventory_items", "inventory_levels", "inventory_shipments",
    "inventory_transfers", "markets_backup_region", "metafield_definitions", "order_transactions",
    "payment_schedules", "payment_terms", "product_feeds", "product_listings", "product_publications",
    "reverse_deliveries", "reverse_fulfillment_orders", "scheduled_product_listings", "selling_plan_groups",
    "shipping_addresses", "subscription_billing_attempts", "subscription_billing_cycle_edits",
    "subscription_billing_cycles", "subscription_contracts", "tax_services", "tender_transactions",
)  # fmt: skip
_PROTECTED = f"topics with data of customers also need {APPROVAL}"


class ShopifySubscriptions(SubscriptionApi[ShopifySettings]):
    """Subscriptions that this app has created. Topics are those of the header, such as ``orders/create``."""

    def listed(self, ctx: ShopifyContext) -> Iterator[Subscription]:
        for page in request_pages(ctx, "/data/webhookSubscriptions", LIST_SUBSCRIPTIONS_QUERY, _PAGE):
            for node in page.items("/data/webhookSubscriptions/nodes"):
                yield _parse_subscription(node, page.address)

    def create(self, ctx: ShopifyContext, topic: str, address: str) -> Subscription:
        def send() -> Subscription:
            try:
                answer = request_graphql(
                    ctx, CREATE_SUBSCRIPTION_MUTATION, topic=topic_in_schema_form(topic), address=address
                )
            except GraphQLError as error:
                hint = _needed_scope_hint(topic) if "ACCESS_DENIED" in error.codes else None
                raise RemoteError(error.message, where=error.where, hint=hint, code=error.code) from None
            payload = answer.at("/data/webhookSubscriptionCreate")
            if message := _refusal_text(payload):
                hint = None if _is_refusal_about_address(payload) else _needed_scope_hint(topic)
                raise RemoteError(
                    f"refused to subscribe to {topic}: {message}",
                    where=answer.address,
                    hint=hint,
                    code="subscription_failed",
                )
            return _parse_subscription(value_at_path_or_missing(payload, "webhookSubscription"), answer.address)

        return created_once(self, ctx, topic, address, send, secret_is_known=True)

    def remove(self, ctx: ShopifyContext, subscription: Subscription) -> None:
        answer = request_graphql(
            ctx, DELETE_SUBSCRIPTION_MUTATION, id=f"gid://shopify/WebhookSubscription/{subscription.id}"
        )
        message = _refusal_text(answer.at("/data/webhookSubscriptionDelete"))
        if message and any(each.id == subscription.id for each in self.listed(ctx)):
            raise RemoteError(
                f"refused to end a subscription to {subscription.topic}: {message}",
                where=answer.address,
                code="subscription_failed",
            )


def topic_in_schema_form(topic: str) -> str:
    return topic.replace("/", "_").upper()


def topic_in_header_form(name: str) -> str:
    """Return ``ORDERS_CREATE`` in the form of a webhook's header: ``orders/create``."""
    text = name.lower()
    for resource in _RESOURCES:
        if text.startswith(f"{resource}_"):
            return f"{resource}/{text.removeprefix(f'{resource}_')}"
    return text.replace("_", "/", 1)


def _parse_subscription(node: Any, source: str) -> Subscription:
    found = read_subscription(node, source, topic="topic", address="uri", active=True)
    return Subscription(number_in_gid_or_empty(found.id), topic_in_header_form(found.topic), found.address)


def _refusal_text(payload: Any) -> str:
    errors = value_at_path_or_missing(payload, "userErrors")
    if not isinstance(errors, list):
        return "the answer says nothing of the mutation"
    return redacted_error_message_in_json(errors, str) or ("without a message" if errors else "")


def _is_refusal_about_address(payload: Any) -> bool:
    return bool(value_at_path_or_missing(payload, "userErrors.0.field.0") == "webhookSubscription")


def _needed_scope_hint(topic: str) -> str:
    scope = SCOPE_BY_TOPIC_RESOURCE.get(topic.partition("/")[0])
    needs = f"{topic} needs the scope {scope}: " if scope else ""
    return f"{needs}check the scopes of the token; {_PROTECTED}"


SCHEMES = tuple(body_signature_scheme(f"{x}Shopify-Hmac-SHA256", f"{x}Shopify-Webhook-Id") for x in ("X-", ""))
_GID = "gid://shopify/"
_Hints = Iterator[Hint]


def webhook_declaration(settings: ShopifySettings) -> Webhooks[ShopifySettings] | None:
    if settings.webhooks is None:
        return None
    return Webhooks(
        SCHEMES,
        settings.webhooks.secrets,
        partial(hints_of_webhook, settings),
        topic_headers=("X-Shopify-Topic", "Shopify-Topic"),
        subscriptions=ShopifySubscriptions(),
        topics=[topic for topic in TOPICS if settings.product_namespace is None or not topic.startswith("products/")],
    )


def hints_of_webhook(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    if "/" not in webhook.topic:
        yield from _hints_from_query_variables(settings, webhook)
    elif webhook.topic in _OF_TOPIC:
        yield from _OF_TOPIC[webhook.topic](settings, webhook)


def _order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    if webhook.at("/test", bool, default=False) and not settings.test_orders:
        return
    key = webhook.identifier("/id")
    if webhook.at("/customer", dict, default=None) is None:
        yield guest_hint(key)
    yield from order_and_invoice_hints(settings, key)


def _deleted_order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/id"))


def _edited_order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/order_edit/order_id"))


def _order_and_invoice_hints_of_fulfillment(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/order_id"))


def _refund_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    yield from order_and_invoice_hints(settings, webhook.identifier("/order_id"))
    if settings.invoices != "never" and settings.refunds == "credit_note":
        yield Hint("invoices", (f"{CREDIT_NOTE}-{webhook.identifier('/id')}",))


def _customer_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:  # noqa: ARG001  one of several
    yield Hint("customers", (webhook.identifier("/id"),))


def _hints_of_customer_merge(settings: ShopifySettings, webhook: Webhook) -> _Hints:  # noqa: ARG001  one of several
    for which in ("kept", "deleted"):
        yield Hint("customers", (_number_in_gid_or_error(webhook, f"/admin_graphql_api_customer_{which}_id"),))


def _product_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    """Yield the variants. Beyond the first hundred, Shopify only names their ids."""
    if settings.product_namespace is not None:
        return
    if settings.product_key == "sku":
        for variant in webhook.each("/variants", default=()):
            if sku := variant.at("/sku", str, default=None):
                yield Hint("products", (sku,))
        return
    for variant in webhook.each("/variants", default=()):
        yield Hint("products", (variant.identifier("/id"),))
    for variant in webhook.each("/variant_gids", default=()):
        yield Hint("products", (_number_in_gid_or_error(variant, "/admin_graphql_api_id"),))


def _stock_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    item, location = webhook.identifier("/inventory_item_id"), webhook.identifier("/location_id")
    if not settings.locations or location in settings.locations:
        yield Hint("stock", (f"{item}-{location}",))


def _number_in_gid_or_error(part: JsonAccess, pointer: str) -> str:
    if number := number_in_gid_or_empty(part.at(pointer, str)):
        return number
    raise RecordError("bad_value", "is no global id", pointer=part.place(pointer))


def _hints_from_query_variables(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    for gid in webhook.at("/query_variables", dict, default={}).values():
        if not isinstance(gid, str) or not gid.startswith(_GID) or not (number := number_in_gid_or_empty(gid)):
            continue
        kind = gid.removeprefix(_GID).partition("/")[0]
        if kind == "Order":
            yield from order_and_invoice_hints(settings, number)
        elif kind == "ProductVariant" and settings.product_namespace is None and settings.product_key == "id":
            yield Hint("products", (number,))
        elif kind == "Customer":
            yield Hint("customers", (number,))


_OF_TOPIC: Mapping[str, Callable[[ShopifySettings, Webhook], _Hints]] = {
    "orders/create": _order_hints,
    "orders/updated": _order_hints,
    "orders/paid": _order_hints,
    "orders/cancelled": _order_hints,
    "orders/fulfilled": _order_hints,
    "orders/partially_fulfilled": _order_hints,
    "orders/delete": _deleted_order_hints,
    "orders/edited": _edited_order_hints,
    "refunds/create": _refund_hints,
    "fulfillments/create": _order_and_invoice_hints_of_fulfillment,
    "fulfillments/update": _order_and_invoice_hints_of_fulfillment,
    "customers/create": _customer_hints,
    "customers/update": _customer_hints,
    "customers/enable": _customer_hints,
    "customers/disable": _customer_hints,
    "customers/delete": _customer_hints,
    "customers/merge": _hints_of_customer_merge,
    "products/create": _product_hints,
    "products/update": _product_hints,
    "inventory_levels/connect": _stock_hints,
    "inventory_levels/update": _stock_hints,
    "inventory_levels/disconnect": _stock_hints,
}
_REPEATED = frozenset(  # orders/updated, customers/update and customers/delete tell the same
    {
        "customers/merge",  # and it needs a scope of its own
        "orders/paid",
        "orders/cancelled",
        "orders/fulfilled",
        "orders/partially_fulfilled",
        "orders/edited",
        "customers/enable",
        "customers/disable",
    }
)
TOPICS = tuple(topic for topic in _OF_TOPIC if topic not in _REPEATED)
"""The topics to subscribe to. ``products/delete`` is not one of them: it names no variant."""
