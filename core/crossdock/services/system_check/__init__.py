"""Tests whether a config can be used: its state, platform, credentials, connections and disks.

Input: a project. Output: findings, each with its subject. It may import what `crossdock.services` may import, and the
inbox.
"""
