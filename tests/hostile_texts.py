"""Texts with which a partner, a file or a person may try to put elements, scripts or other signs into a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

_RUNS = "window.ran=1"
_ELEMENTS = (
    "script", "img", "svg", "iframe", "object", "embed", "math", "body", "input", "details", "video", "audio", "style",
    "link", "base", "meta", "form", "marquee", "template", "noscript", "textarea", "title", "select", "dialog",
)  # fmt: skip
_BEFORE = ("", '">', "'>", "-->", "</title></textarea></script></style></svg>", "]]>", "</td></tr></table>", "` ")
_EVENTS = ("onerror", "onload", "onfocus", "ontoggle", "onanimationend", "onpointerenter", "onbeforetoggle", "onbegin")
_SCHEMES = ("javascript:", "JaVaScRiPt:", "java\tscript:", "\x01javascript:", "javascript&colon;", "data:text/html,")
_TEMPLATES = (
    "{{7*7}}", "{% raw %}", "{{ visit.console }}", "${7*7}", "<%= 7*7 %>", "#{7*7}", "{0.__class__}", "%(key)s", "%s%n",
    "{#", "{{ ''|safe }}", "{%- endblock %}", "{{config}}", "{key.__init__.__globals__}",
)  # fmt: skip
_SIGNS = (
    "\u202egpj.exe", "\u2066a\u2069", "\u200b\u200d\u2060", "\ufeff", "\x1b[31m\x1b]0;t\x07", "a\r\nb: c",
    "\x85\u2028\u2029", "\x01\x08\x7f\x9f", "\U000e0041\U000e007f", "e\u0301" * 40, "\u0600" * 30,
    "﷽" * 20, "<\u200bscript>", "\uff1cscript\uff1e",
    "\u2215\u2216", "\u3164", "&lt;script&gt;", "&#60;script&#62;", "&#x3c;b&#x3e;",
    "&amp;amp;", "+ADw-script+AD4-", "%3Cscript%3E",
)  # fmt: skip
_PATHS = (
    "../../../etc/passwd", "..\\..\\x", "//evil.example/x", "https://evil.example/", "\\\\evil.example\\x", "/sign-out",
    "/t/other/do/sync", "?show=data&", "#content", "a/b?c=d&e=f#g", "%2e%2e%2f",
    "file:///etc/passwd", "C:\\x", "~root", "-rf",
)  # fmt: skip
_STYLES = (
    "</style><style>*{display:none}", "};background:url(//evil.example)", 'x" style="position:fixed;inset:0"',
    "expression(alert(1))", "x' class='skip", 'x" hidden="', "*/", "\\3c script\\3e",
)  # fmt: skip
_LONG = (
    "<b>" * 3_000,
    "A" * 20_000,
    "<" * 600,
    '"' * 600,
    "&" * 600,
    "'><b>" * 200,
    f"{'x' * 499}<b>",
    f"{'x' * 500}\u202e",
)


def _elements() -> Iterator[str]:
    for number, (element, before) in enumerate(product(_ELEMENTS, _BEFORE[:4])):
        event = _EVENTS[number % len(_EVENTS)]
        yield f"{before}<{element} src=x href=x {event}={_RUNS}>{_RUNS}</{element}>"
    for before in _BEFORE:
        yield f"{before}<script>{_RUNS}</script>"
        yield f"{before}<svg/onload={_RUNS}><animate onbegin={_RUNS} attributeName=x>"
    for quote, event in product("\"'", _EVENTS):
        yield f"x{quote} autofocus tabindex=1 {event}={quote}{_RUNS}"


PAYLOADS = (
    *_elements(),
    *(f"{scheme}{_RUNS}" for scheme in _SCHEMES),
    *(f"<a href={scheme}{_RUNS}>x</a>" for scheme in _SCHEMES),
    *_TEMPLATES,
    *_SIGNS,
    *_PATHS,
    *_STYLES,
    *_LONG,
)
"""More than 200. Those with a script set ``window.ran`` if it is executed."""
