"""Builds the documentation site: docs/, and the reference, which is written from the code."""
