"""Leaves that know nothing of the rest: exact JSON, field types, addresses, clocks, texts, private files, tallies.

May import `crossdock.errors` only.
"""
