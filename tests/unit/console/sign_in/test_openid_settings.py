"""The file of an OpenID Connect provider."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crossdock.console.sign_in.openid_provider import OpenIdSettings, RoleRule, load_openid_settings
from crossdock.errors import ConfigError

PAGE = (Path(__file__).parents[4] / "docs" / "how_to" / "console" / "openid_connect.md").read_text(encoding="utf-8")
RULE = "roles: [{claim: groups, value: staff, role: viewer}]"


def test_the_page_shows_a_whole_file_and_all_of_its_keys(tmp_path: Path) -> None:
    """The example loads, and the table has the keys of the settings and of a rule."""
    example = re.search(r"```yaml\n(# oidc.*?)```", PAGE, re.DOTALL)
    assert example
    (tmp_path / "oidc.yaml").write_text(example[1])
    assert load_openid_settings(tmp_path / "oidc.yaml").roles[1].tenants == ("acme",)
    documented = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert set(documented) == {*OpenIdSettings.model_fields, *(f"roles.{key}" for key in RoleRule.model_fields)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"issuer: http://login.example.com\nclient_id: c\n{RULE}", "must be https"),
        (f"issuer: https://login.example.com\nclient_id: c\nclient_secret: hunter2\n{RULE}", "never written here"),
        ("issuer: https://login.example.com\nclient_id: c\nroles: []", "name at least one"),
        (f"issuer: https://login.example.com\nclient: c\n{RULE}", "client_id"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    """Without its secrets."""
    (tmp_path / "oidc.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"oidc\.yaml:[0-9]+:[0-9]+: ") as refused:
        load_openid_settings(tmp_path / "oidc.yaml")
    assert told in str(refused.value)
    assert "hunter2" not in str(refused.value)
