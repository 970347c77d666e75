from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.serving import cross_site_protection
from crossdock.values.serving.cross_site_protection import CsrfTokens, FormError


def refusal(tokens: CsrfTokens, session: str, token: str) -> int:
    with pytest.raises(FormError) as refused:
        tokens.use_once_or_error(session, token)
    assert refused.value.message
    return refused.value.status


def test_a_token_is_accepted_once() -> None:
    """The second use is 409."""
    tokens = CsrfTokens()
    token = tokens.issue("a")
    tokens.use_once_or_error("a", token)
    assert refusal(tokens, "a", token) == 409


def test_a_token_belongs_to_one_session_of_one_sandbox() -> None:
    """In another session, and after a restart, it is 403; a failed attempt does not use it up."""
    tokens = CsrfTokens()
    token = tokens.issue("a")
    assert refusal(tokens, "b", token) == 403
    assert refusal(CsrfTokens(), "a", token) == 403
    tokens.use_once_or_error("a", token)


@given(st.text(max_size=90))
def test_no_other_text_is_a_token(text: str) -> None:
    """Any text that was not issued is 403, whatever its form."""
    assert refusal(CsrfTokens(), "a", text) == 403


@given(at=st.integers(0, 83), to=st.sampled_from("0123456789abcdef."))
def test_a_changed_token_is_refused(at: int, to: str) -> None:
    """A token in which one character differs is 403."""
    tokens = CsrfTokens()
    token = tokens.issue("a")
    changed = token[: at % len(token)] + to + token[at % len(token) + 1 :]
    if changed != token:
        assert refusal(tokens, "a", changed) == 403


def test_the_memory_of_used_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that is no longer remembered as used is refused as too old; newer ones are accepted in any order."""
    monkeypatch.setattr(cross_site_protection, "_REMEMBERED", 10)
    tokens = CsrfTokens()
    issued = [tokens.issue("a") for _ in range(40)]
    for token in issued[:30]:
        tokens.use_once_or_error("a", token)
    assert [refusal(tokens, "a", token) for token in issued[:30]] == [403] * 20 + [409] * 10
    for token in reversed(issued[30:]):
        tokens.use_once_or_error("a", token)


def test_nobody_uses_up_the_tokens_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many forms other sessions send, also of people who have not signed in."""
    monkeypatch.setattr(cross_site_protection, "_SESSIONS", 10)
    tokens = CsrfTokens()
    mine = tokens.issue("a")
    for number in range(500):
        session = f"b{number % 50}"
        tokens.use_once_or_error(session, tokens.issue(session))
    tokens.use_once_or_error("a", mine)
    assert refusal(tokens, "a", mine) == 409
    assert len(tokens._used) == 10
