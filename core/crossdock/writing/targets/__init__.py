"""Targets: the systems that operations are sent to."""
