"""The webhook subscriptions of the app at a Shopify shop, over HTTPS.

Sources: the published Admin schema of version 2026-10, and shopify.dev/docs/apps/build/webhooks. Webhooks are signed
with the app's client secret, which the API does not return. Shopify refuses a second subscription to a topic at the
same address. Those in the app's own configuration file are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crossdock.errors import RemoteError
from crossdock.reading.sources.api_error_messages import error_message_in
from crossdock.sources import GraphQLError
from crossdock.values.json_paths import at_path
from crossdock.webhooks import Subscription, SubscriptionApi, created_once, read_subscription
from crossdock_connectors.shop.shopify.pages import ShopifyContext, number_in_gid_or_empty, request_pages, request_query
from crossdock_connectors.shop.shopify.scopes import APPROVAL
from crossdock_connectors.shop.shopify.settings import ShopifySettings

_PAGE = 100
_FIELDS = "id topic uri"
LIST = f"""query webhookSubscriptions($first: Int!, $after: String) {{
  webhookSubscriptions(first: $first, after: $after) {{ nodes {{ {_FIELDS} }} pageInfo {{ hasNextPage endCursor }} }}
}}"""
CREATE = f"""mutation webhookSubscriptionCreate($topic: WebhookSubscriptionTopic!, $address: String!) {{
  webhookSubscriptionCreate(topic: $topic, webhookSubscription: {{ uri: $address, format: JSON }}) {{
    webhookSubscription {{ {_FIELDS} }} userErrors {{ field message }}
  }}
}}"""
DELETE = """mutation webhookSubscriptionDelete($id: ID!) {
  webhookSubscriptionDelete(id: $id) { deletedWebhookSubscriptionId userErrors { field message } }
}"""

SCOPES = {
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
        for page in request_pages(ctx, "/data/webhookSubscriptions", LIST, _PAGE):
            for node in page.items("/data/webhookSubscriptions/nodes"):
                yield _parse_subscription(node, page.address)

    def create(self, ctx: ShopifyContext, topic: str, address: str) -> Subscription:
        def send() -> Subscription:
            try:
                answer = request_query(ctx, CREATE, topic=schema_topic(topic), address=address)
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
            return _parse_subscription(at_path(payload, "webhookSubscription"), answer.address)

        return created_once(self, ctx, topic, address, send, secret_is_known=True)

    def remove(self, ctx: ShopifyContext, subscription: Subscription) -> None:
        answer = request_query(ctx, DELETE, id=f"gid://shopify/WebhookSubscription/{subscription.id}")
        message = _refusal_text(answer.at("/data/webhookSubscriptionDelete"))
        if message and any(each.id == subscription.id for each in self.listed(ctx)):
            raise RemoteError(
                f"refused to end a subscription to {subscription.topic}: {message}",
                where=answer.address,
                code="subscription_failed",
            )


def schema_topic(topic: str) -> str:
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
    errors = at_path(payload, "userErrors")
    if not isinstance(errors, list):
        return "the answer says nothing of the mutation"
    return error_message_in(errors, str) or ("without a message" if errors else "")


def _is_refusal_about_address(payload: Any) -> bool:
    return bool(at_path(payload, "userErrors.0.field.0") == "webhookSubscription")


def _needed_scope_hint(topic: str) -> str:
    scope = SCOPES.get(topic.partition("/")[0])
    needs = f"{topic} needs the scope {scope}: " if scope else ""
    return f"{needs}check the scopes of the token; {_PROTECTED}"
