from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.pgp_senders import Senders, senders


@pytest.fixture(scope="session")
def people() -> Iterator[Senders]:
    with senders() as made:
        yield made
