"""A console that shows foreign text without control characters, markup or broken keys."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from crossdock.cli.fitting_table import FittingTable, wrapped
from crossdock.printable import printable

_UNBOUNDED = 100_000  # characters


class PlainConsole(Console):
    """A console whose texts, also in tables, are made `printable`: one line each, without markup or emoji codes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print. Lines are wrapped between words on a terminal, and not at all when piped, whatever COLUMNS is."""
        if not all(isinstance(each, str | FittingTable) for each in objects):
            super().print(*objects, **options)
            return
        width = self.width
        if not self.is_terminal:
            self.width = _UNBOUNDED
        elif not options.get("soft_wrap"):
            objects = tuple(self._wrapped(each) if isinstance(each, str) else each for each in objects)
        options = {"crop": False, "overflow": "ignore", **options}
        try:
            super().print(*objects, **options)
        finally:
            self.width = width

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich calls this for every `str`."""
        return super().render_str(printable(text), **options)

    def _wrapped(self, text: str) -> Text:
        return Text("\n".join(wrapped(printable(text), self.width)))
