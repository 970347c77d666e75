"""The types of the documents that commands print with ``--json``; the reference of JSON output is written from them.

Modules in this package leave out ``from __future__ import annotations``, which hides `NotRequired` from libraries.
"""
