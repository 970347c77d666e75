"""What ``import crossdock`` and ``help(crossdock)`` offer to connector authors."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import crossdock
from crossdock import sources


def test_help_and_completion_list_every_public_name() -> None:
    """Names that were not used yet are listed too."""
    code = "import crossdock as c, crossdock.sources as s\nprint({*c.__all__} - {*dir(c)}, {*s.__all__} - {*dir(s)})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "set() set()\n"
    text = pydoc.plain(pydoc.render_doc(crossdock))
    assert [name for name in crossdock.__all__ if name not in text] == []


def test_the_lists_are_sorted() -> None:
    """A name is found, and written once."""
    for module in (crossdock, sources):
        assert module.__all__ == sorted(set(module.__all__))


def test_what_a_guide_tells_authors_to_raise_or_catch_can_be_imported() -> None:
    """From the module that the guide names."""
    assert {"ConfigError", "NotFoundError", "RemoteError", "UnavailableError"} <= {*sources.__all__}
    assert all(hasattr(sources, name) for name in sources.__all__)
