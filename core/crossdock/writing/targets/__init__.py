"""Targets: what operations are sent to."""
