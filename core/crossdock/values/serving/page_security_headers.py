"""The headers that protect a page and what it shows from other sites."""

from __future__ import annotations

PAGE_HEADERS = {
    "cache-control": "no-store",  # a page can show a key, and a browser keeps no copy of it
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer a browser sends "Origin: null" from the page's own forms
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
