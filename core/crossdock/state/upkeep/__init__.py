"""Maintenance of the state: retention, purging and compacting."""
