"""Maintenance of the state: retention, purging and compacting.

Input: an open state, and how long facts are kept. Output: counts of removed rows, and a smaller database. It may import
all of `crossdock.state`.
"""
