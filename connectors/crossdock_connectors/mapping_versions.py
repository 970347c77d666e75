"""Versions of mappings, which decide when the records of a stream are mapped again."""

from __future__ import annotations

import hashlib

from crossdock import Settings
from crossdock.values import exact_json


def version_of_mapping_and_settings(settings: Settings, mapped: set[str], mapping: int) -> str:
    """Return the version of a mapping: the number *mapping* of its code, and a hash of the *mapped* settings."""
    facts = settings.model_dump(mode="json", include=mapped)
    return f"{mapping}:{hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]}"
