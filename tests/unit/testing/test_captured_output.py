"""Capturing what is printed and logged."""

from __future__ import annotations

import logging
import sys

from crossdock.testing.connector_under_test import captured_output


def test_prints_and_logs_are_captured_and_no_more() -> None:
    """Also at levels that are not shown; afterwards the root logger is as before."""
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with captured_output() as output:
        print("printed")
        print("error", file=sys.stderr)
        logging.getLogger("shop.client").debug("logged")
    assert output.getvalue().split() == ["printed", "error", "logged"]
    assert (root.level, list(root.handlers)) == before
