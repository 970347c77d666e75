"""Third-party logistics providers, read and written: ShipBob, and Amazon Multi-Channel Fulfillment."""
