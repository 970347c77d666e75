"""Who acts: the environment, the user of the process, or whom a server names."""

from __future__ import annotations

import getpass
import socket

import pytest

from crossdock.values.acting_person_and_process import LONGEST_NAME, Actor, acting_as, current_actor


def test_who_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user on the command line of this host, unless the environment says who, where from and why."""
    for name in ("PERSON", "ADDRESS", "REASON"):
        monkeypatch.delenv(f"CROSSDOCK_{name}", raising=False)
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    host = socket.gethostname()
    assert current_actor() == Actor("ann", f"command line, {host}")
    assert current_actor().name_with_host == f"ann@{host}"
    monkeypatch.setenv("CROSSDOCK_PERSON", " Ann Lee ")
    monkeypatch.setenv("CROSSDOCK_ADDRESS", "10.0.0.7")
    monkeypatch.setenv("CROSSDOCK_REASON", "asked by\nBob")
    assert current_actor() == Actor("Ann Lee", "10.0.0.7", r"asked by\nBob")
    assert current_actor().name_with_host == "Ann Lee"
    with acting_as(Actor("Bob", "10.0.0.8")):
        assert current_actor() == Actor("Bob", "10.0.0.8")
    assert current_actor().name == "Ann Lee"


def test_what_the_environment_says_fits_into_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are cut, without characters that a database refuses; an empty one says nothing."""
    monkeypatch.setenv("CROSSDOCK_PERSON", "\udcff" * LONGEST_NAME)
    monkeypatch.setenv("CROSSDOCK_ADDRESS", " ")
    actor = current_actor()
    assert (len(actor.name), actor.name.isascii()) == (LONGEST_NAME, True)
    assert actor.address.startswith("command line, ")
