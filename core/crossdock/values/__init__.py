"""Modules without knowledge of the rest: exact JSON, field types, addresses, clocks, texts, private files, tallies.

The package may import `crossdock.errors` only.
"""
