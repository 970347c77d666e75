"""The config of the round trip: orders of the platform go to a 3PL; statuses, tracking, stock and bills come back."""

from __future__ import annotations

from typing import Any

import yaml

CONFIG = """
x-changed: &changed
  records: items
  mode: incremental
  params: {owner: acme, limit: 50, updated_since: "{since}"}
  cursor: {column: updated_at, as: instant}
  changes: {at_most: 1000000}
x-ours: &ours
  ours: {member: reference, namespace: erp}                        # others are orders that somebody else placed
  key: [reference]                                                 # the platform's id
  resource: order
  matches: id
platform:
  auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}
  rate: {per_minute: 600000, burst: 100000}
  retry: {base_s: 0.01, cap_s: 0.05}
state: sqlite:///state.db
connections:
  erp:
    kind: platform
    streams:
      orders:
        read: order
        to: plain.orders
        expand: [customerId, productId]
        changes: {at_most: 1000000}
        map:
          owner: {const: acme}
          currency: currency
          placed_at: {from: placedAt, as: instant}
          customer: {object: {code: customerId, name: customer.name}}
          lines:
            of: items
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
          read: GET /v1/orders/{id}
    streams:
      bins:
        <<: *changed
        path: /v1/locations
        key: [code]
        resource: warehouse_bin
        map: {code: code, warehouse: warehouse}
      stock:
        path: /v1/stock
        params: {owner: acme, limit: 50}
        records: items
        mode: snapshot
        key: [sku, lot, location, state]
        resource: inventory_lot
        changes: {at_most: 1000000}
        map:
          productId: {ref: product, key: sku}
          lotNumber: lot
          binId: {ref: warehouse_bin, key: location}
          quantity: {from: quantity, as: decimal}
          status: state
      statuses:
        <<: [*changed, *ours]
        path: /v1/orders
        contributes: [status]
        map:
          status:
            from: status
            table: {Awaiting: open, PartDespatched: partial, Despatched: shipped, ClosedShort: short, Void: cancelled}
      parcels:                                                     # of one order: all its shipments
        <<: *ours
        path: /v1/shipments
        params: {owner: acme, limit: 50}
        records: items
        mode: snapshot
        group_by: [reference]
        contributes: [tracking]
        changes: {at_most: 1000000}
        map: {tracking: {each: {carrier: carrier, number: tracking}}}
      bills:                                                       # of each shipment one invoice
        <<: *changed
        path: /v1/shipments
        key: [id]
        ours: {member: reference, namespace: erp}
        resource: invoice
        map:
          customerId: customer.code
          currency: currency
          items:
            of: lines
            each:
              productId: {ref: product, key: sku}
              quantity: {from: quantity, as: decimal}
              unitPrice: {from: unit_price, as: decimal}
"""


def config(base_url: str, tenant: str, partner_url: str, resource: dict[str, Any]) -> dict[str, Any]:
    """The config for a platform and a 3PL at these addresses; *resource* adds settings of its orders."""
    document: dict[str, Any] = yaml.safe_load(CONFIG)
    document["platform"] |= {"base_url": base_url, "tenant": tenant}
    plain = document["connections"]["plain"]
    plain["base_url"] = partner_url
    plain["target"]["resources"]["orders"] |= resource
    return document
