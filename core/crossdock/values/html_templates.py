"""HTML pages from templates that escape every value and refuse a missing one. Only this module imports jinja2."""

from __future__ import annotations

from collections.abc import Callable

import jinja2


class EscapedOnlyText(str):
    """A text that is no shown text, and so only escaped: an address, or the value of a field. A filter makes it."""

    __slots__ = ()


class PageTemplates:
    """The templates in the folder ``page_templates`` of a package.

    *shown* changes each text before it is escaped, but those that are `EscapedOnlyText`.
    """

    def __init__(self, package: str, *, shown: Callable[[str], str] = str) -> None:
        def finalize(value: object) -> object:
            is_shown = (
                isinstance(value, str) and not isinstance(value, EscapedOnlyText) and not hasattr(value, "__html__")
            )
            return shown(str(value)) if is_shown else value

        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader(package, "page_templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters["exact"] = EscapedOnlyText

    def render(self, template: str, /, **values: object) -> str:
        return self._environment.get_template(template).render(**values)

    def macro(self, template: str, name: str) -> Callable[..., str]:
        """Return a macro of *template*. It returns HTML, which templates insert unchanged."""
        found: Callable[..., str] = getattr(self._environment.get_template(template).module, name)
        return found
