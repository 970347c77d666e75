"""What connectors import from ``crossdock.sources``."""

from __future__ import annotations

import pytest

from crossdock import sources


def test_every_name_is_there() -> None:
    """Names are imported late: each needs a module that has it."""
    assert set(sources.__all__) == set(sources._HOME_OF)
    assert all(getattr(sources, name) is not None for name in sources.__all__)


def test_an_unknown_name_is_refused() -> None:
    """A typo in an import is an AttributeError, as for any module."""
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = sources.Nonsense  # type: ignore[attr-defined]  # it is wrong
