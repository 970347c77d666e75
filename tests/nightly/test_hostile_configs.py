"""Whatever stands in a config file, it loads or is refused with its place, in bounded memory."""

from __future__ import annotations

from tests import hostile_configs


def test_every_document_is_judged_in_bounded_memory() -> None:
    """Mutations of right configs, damaged texts and bombs end in findings, never in another error, within 400 MB."""
    hostile_configs.in_bounded_memory(60, bombs=6)


def test_right_configs_are_taken() -> None:
    """The configs that are mutated load as they are: without that, every refusal would prove nothing."""
    hostile_configs.right_configs_load()
