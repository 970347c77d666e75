"""Modules that every other package may import: exact JSON, field types, addresses, clocks, texts, files, tallies."""
