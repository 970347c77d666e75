"""The config of the shop's trip: orders go to the platform and to a 3PL; parcels and stock go back to the shop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from crossdock_connectors.shop.settings import CHARGES

CONFIG = """
platform:
  auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}
  rate: {per_minute: 600000, burst: 100000}
  retry: {base_s: 0.01, cap_s: 0.05}
state: sqlite:///state.db
connections:
  shop:
    kind: hurried_shop
    token: env:SHOP_TOKEN
    progress: shop
    bulk: false
    streams:
      customers: &all {changes: {at_most: 1000000}}
      orders: *all
      stock: *all
  erp:
    kind: platform
    streams:
      orders:
        read: order
        to: plain.orders
        expand: [customerId, productId]
        deleted: {field: status, equals: cancelled}
        on_gone: delete
        gone: {at_most_percent: 100}
        changes: {at_most: 1000000}
        map:
          owner: {const: acme}
          currency: currency
          placed_at: {from: placedAt, as: instant}
          customer: {object: {code: externalId, name: customer.name}}        # the shop's order: "shop:1019"
          lines:
            of: items
            where: {not: {field: product.sku, one_of: []}}                   # goods, and not what they cost besides
            each:
              sku: product.sku
              quantity: {from: quantity, as: decimal}
              unit_price: {from: unitPrice, as: decimal}
  plain:
    kind: http_json
    auth: {kind: header, name: Api-Key, value: env:DEPOT_KEY}
    rate: {per_minute: 600000, burst: 10000}
    pagination: {kind: cursor_in_body, path: next_cursor}
    target:
      retry: {base_s: 0.01, cap_s: 0.05}
      settle_s: 0
      resources:
        orders:
          members:
            owner: {type: text, required: true}
            placed_at: instant
            currency: text
            customer: {type: object, members: {code: text, name: {type: text, personal: true}}}
            lines:
              type: list
              required: true
              members:
                sku: {type: text, required: true}
                quantity: {type: number, required: true}
                unit_price: number
          name: reference
          create: POST /v1/orders
          update: PATCH /v1/orders/{id}
          delete: POST /v1/orders/{id}/cancel
          deleted: {field: status, equals: Void}
          read: GET /v1/orders/{id}
          look_up: {path: /v1/orders, params: {owner: acme, reference: "{name}"}, records: items}
          repeated: {status: 422, text: duplicate_reference}
    streams:
      shipments:
        path: /v1/shipments
        params: {owner: acme, limit: 50, updated_since: "{since}"}
        records: items
        mode: incremental
        cursor: {column: updated_at, as: instant}
        columns: {customer.code: {strip_prefix: "shop:"}}
        skip: {others: {not: {field: reference, starts_with: "erp:"}}}
        key: [customer.code, tracking]
        to: shop.fulfillments
        map:
          carrier: carrier
          items: {of: lines, each: {sku: sku, quantity: {from: quantity, as: decimal}}}
      stock:
        path: /v1/stock
        params: {owner: acme, limit: 50}
        records: items
        mode: snapshot
        key: [sku, location]
        to: shop.stock
        changes: {at_most: 1000000}
        map: {quantity: {from: quantity, as: decimal}}
"""


def config(base_url: str, tenant: str, partner_url: str, shop_url: str, locations: Mapping[str, str]) -> dict[str, Any]:
    """The config for a platform, a 3PL and a shop at these addresses; *locations* are the shop's ids by the 3PL's."""
    document: dict[str, Any] = yaml.safe_load(CONFIG)
    document["platform"] |= {"base_url": base_url, "tenant": tenant}
    connections = document["connections"]
    connections["plain"]["base_url"], connections["shop"]["base_url"] = partner_url, shop_url
    lines = connections["erp"]["streams"]["orders"]["map"]["lines"]
    lines["where"]["not"]["one_of"] = [charge.sku for charge in CHARGES.values()]
    connections["plain"]["streams"]["stock"]["columns"] = {"location": {"table": dict(locations)}}
    return document
