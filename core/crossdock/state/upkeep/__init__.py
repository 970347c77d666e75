"""Maintenance of the state: purging and compacting."""
