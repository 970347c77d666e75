"""Turns the settings of a connection into batches of rows, with evidence that all of them were read.

Input: settings, and what earlier runs have read. Output: batches of rows or JSON objects as they were received, with
their places. It may import `crossdock.state`, `crossdock.pacing` and what is below them. Sources are above formats and
transport, which do not know each other.
"""
