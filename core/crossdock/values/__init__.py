"""Modules that every other package may import: exact JSON, field types, addresses, clocks, texts, files, tallies.

Input and output are texts, numbers, times and files, without knowledge of streams or targets. It may import the errors
and `crossdock.printable`.
"""
