"""What ``help()`` shows to authors names every attribute of the classes that they extend."""

from __future__ import annotations

import inspect
import re

import pytest

from crossdock import Stream
from crossdock.targets import ApiTarget, Target


@pytest.mark.parametrize("extended", [Stream, Target, ApiTarget])
def test_help_says_something_about_each_attribute(extended: type) -> None:
    """The class's own text lists the attributes of all of its bases, each with a sentence, and no others."""
    declared = {name for base in extended.__mro__ for name in inspect.get_annotations(base) if name[0] != "_"}
    section = (inspect.getdoc(extended) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    described = re.findall(r"^    (\w+): \S.*", section, re.MULTILINE)
    assert len(described) == len(set(described))
    assert set(described) == declared
