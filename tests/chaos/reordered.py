"""Runs a command of a crossdock whose serializer writes the members of JSON objects in the opposite order.

python -P tests/chaos/reordered.py ARGUMENTS...

It stands for another build: every value is the same, and no object with two members has the same bytes.
"""

from __future__ import annotations

import runpy
from typing import Any

from crossdock.values import exact_json

_ours = exact_json.dumps


def dumps(value: Any) -> bytes:
    """As `crossdock.values.exact_json.dumps`, but for the order of members."""
    if isinstance(value, dict):
        return b"{%s}" % b",".join(b"%s:%s" % (_ours(name), dumps(value[name])) for name in sorted(value, reverse=True))
    if isinstance(value, list | tuple):
        return b"[%s]" % b",".join(map(dumps, value))
    return _ours(value)


def main() -> None:
    exact_json.dumps = dumps
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
