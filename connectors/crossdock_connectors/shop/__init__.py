"""Shops: Shopify and WooCommerce, read by the same streams."""
