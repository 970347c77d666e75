"""A config file is read strictly: every finding has its place, secrets are references."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from crossdock.errors import ConfigError
from crossdock.values import config_file
from crossdock.values.config_base_types import ConfigModel, GivenText, Name, Secret, SecretRef


class Part(ConfigModel):
    size: int = 1
    label: str | None = None


class Fixed(ConfigModel):
    const: str | bool | int


class Whole(ConfigModel):
    name: str
    ratio: float = 0.5
    token: SecretRef | None = None
    parts: dict[str, Part] = {}
    fixed: Fixed | None = None
    given: GivenText = None


def read(tmp_path: Path, text: str) -> Whole:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    document = config_file.read_config_with_overrides(path)
    return document.validated_as_model(Whole, document.data)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param("name: x\nparts:\n  a: {szie: 2}", ":3:7: parts.a.szie", "did you mean 'size'", id="unknown key"),
        pytest.param("name: x\nparts:\n  a: {SIZE: 2}", ":3:7: parts.a.SIZE", "did you mean 'size'", id="capitals"),
        pytest.param(
            "name: x\nzzz: 1", ":2:1: zzz", "known: fixed, given, name, parts", id="unknown key, nothing near"
        ),
        pytest.param("name: x\nname: y", ":2:1", "'name' is repeated", id="key twice"),
        pytest.param("name: 17", ":1:1: name", "quote numbers", id="number for text"),
        pytest.param(
            "name: x\nparts: {a: {size: big}}", ":2:13: parts.a.size", "must be a whole number", id="text for number"
        ),
        pytest.param("parts: {}", ":1:1: name", "is missing", id="missing"),
        pytest.param("name: x\ntoken: hunter2", ":2:1: token", "refer to it by env:NAME or file:PATH", id="secret"),
        pytest.param("name: [x", ":1:", "not valid YAML", id="no YAML"),
        pytest.param("name: x\ntoken: *hunter2", ":2:8", "undefined alias", id="secret that looks like an alias"),
        pytest.param("name: x\ntoken: !hunter2 y", ":2:8", "tags are not supported", id="secret that looks like a tag"),
        pytest.param("name: 2026-13-41", ":1:7", "is not one: quote it", id="no date"),
        pytest.param("- a", "c.yaml", "mapping of sections", id="a list"),
        pytest.param("name: x\n1: y", ":2:1", "1: unknown key", id="key is a number"),
        pytest.param("name: x\nratio: .nan", "c.yaml", "finite", id="not a number"),
        pytest.param("name: NO", ":1:1: name", 'NO is a boolean in YAML; quote it, "NO"', id="boolean for text"),
        pytest.param("name: NULL", ":1:1: name", 'NULL means no value in YAML; quote it, "NULL"', id="null for text"),
        pytest.param("name:", ":1:1: name", "is empty", id="nothing for text"),
        pytest.param("name: 2026-01-02", ":1:1: name", "quote numbers and dates", id="date for text"),
        pytest.param(
            "name: 0017", ":1:1: name", 'octal number in YAML: quote it if it is text, as in "0017"', id="octal"
        ),
        pytest.param("name: 12:30", ":1:1: name", "a number to base 60 in YAML: quote it", id="base 60"),
        pytest.param("name: [x]", ":1:1: name", "must be text", id="list for text"),
        pytest.param("name: x\ngiven: ~", ":2:1: given", '~ means no value in YAML; quote it, "~"', id="given null"),
        pytest.param("name: x\nfixed: {const: NO}", ":2:9: fixed.const", "NO is the boolean false", id="constant NO"),
        pytest.param("name: x\nfixed: {const: on}", ":2:9: fixed.const", "or write true", id="constant on"),
        pytest.param("name: x\nparts: null", ":2:1: parts", "must be a section of keys", id="no section"),
        pytest.param("name: x\ntoken: ${HUNTER}", ":2:1: token", "refer to it by env:NAME", id="secret by a variable"),
        pytest.param("name: ${NONE}", ":1:7", "environment variable NONE is not set", id="unset variable"),
        pytest.param(
            "x-part: &part\n  szie: 2\nname: x\nparts: {a: {<<: *part}}",
            ":2:3: parts.a.szie",
            "did you mean 'size'",
            id="in a merged section",
        ),
        pytest.param("name: !!python/object/apply:os.getcwd []", ":1:", "", id="a tag that would run code"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, place: str, message: str
) -> None:
    """Line, column and path stand in the message; the value does not."""
    monkeypatch.setenv("HUNTER", "hunter2")
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert place in str(refused.value)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    """Whoever mends a file wants to see every mistake."""
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "parts:\n  a: {size: x}\n  b: {size: y}")
    assert str(refused.value).count("c.yaml:") == 3


def test_numbers_are_exact_until_a_model_wants_a_float(tmp_path: Path) -> None:
    """YAML's floats come as decimals, and a duration may still be one."""
    assert read(tmp_path, "name: x\nratio: 0.25").ratio == 0.25


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """The hint names the option."""
    with pytest.raises(ConfigError, match="no such config file"):
        config_file.read_config_with_overrides(tmp_path / "none.yaml")


def test_secrets_come_from_the_environment_or_an_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference is resolved when it is needed; a file is relative to the config."""
    monkeypatch.setenv("CROSSDOCK_TEST_TOKEN", "s3cret")
    secret = tmp_path / "key"
    secret.write_text("  from file\n")
    secret.chmod(0o600)
    assert Secret("env:CROSSDOCK_TEST_TOKEN", tmp_path).reveal() == "s3cret"
    assert Secret("file:key", tmp_path).reveal() == "from file"
    assert "s3cret" not in repr(read(tmp_path, "name: x\ntoken: env:CROSSDOCK_TEST_TOKEN"))


@pytest.mark.parametrize(
    ("reference", "mode", "message"),
    [
        pytest.param("env:CROSSDOCK_NOT_SET", None, "CROSSDOCK_NOT_SET is not set", id="variable not set"),
        pytest.param("file:none", None, "cannot be read", id="no file"),
        pytest.param("file:~nobody-here/key", None, "an unknown user", id="nobody's home"),
        pytest.param("file:key", 0o644, "others may read", id="readable by all"),
        pytest.param("file:key", 0o600, "empty", id="empty"),
    ],
)
def test_a_secret_that_cannot_be_used_says_why(tmp_path: Path, reference: str, mode: int | None, message: str) -> None:
    """The message names the variable or the file, never a value."""
    if mode is not None:
        (tmp_path / "key").write_text("")
        (tmp_path / "key").chmod(mode)
    with pytest.raises(ConfigError, match=message):
        Secret(reference, tmp_path).reveal()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge", "link to a pipe"])
def test_a_secret_is_a_small_regular_file(tmp_path: Path, kind: str) -> None:
    """A pipe without a writer, a folder, a device without end and a file of a terabyte are refused at once."""
    path = tmp_path / "key"
    match kind:
        case "pipe":
            os.mkfifo(path, 0o600)
        case "link to a pipe":
            os.mkfifo(tmp_path / "pipe", 0o600)
            path.symlink_to("pipe")
        case "folder":
            path.mkdir(0o700)
        case "device":
            path = Path("/dev/zero")
        case _:
            with path.open("wb") as file:
                file.truncate(1 << 40)
            path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"cannot be read: it is (not a regular file|larger than 65,536 bytes)"):
        Secret(f"file:{path}", tmp_path).reveal()


def test_a_secret_may_be_behind_a_link(tmp_path: Path) -> None:
    """Secrets that a cluster mounts are links to regular files."""
    (tmp_path / "key").write_text("s3cret")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "link").symlink_to("key")
    assert Secret("file:link", tmp_path).reveal() == "s3cret"


def test_a_config_is_a_small_utf_8_file(tmp_path: Path) -> None:
    """A folder, a device without end and a byte that is not UTF-8 are findings; the byte's with line and column."""
    (tmp_path / "c.yaml").write_bytes("name: x\r\nÄ: \xff".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"c.yaml:2:1: is not UTF-8 text"):
        config_file.read_config_with_overrides(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="larger than 1,048,576 bytes"):
        config_file.read_config_with_overrides(Path("/dev/zero"))
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        config_file.read_config_with_overrides(tmp_path)


def test_a_flood_of_findings_is_cut(tmp_path: Path) -> None:
    """Fifty findings are shown, and the number of the others; a long value does not fill the screen."""
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "name: x\nparts: {" + ", ".join(f"p{number}: 1" for number in range(60)) + "}")
    assert str(refused.value).count("c.yaml:") == 50
    assert str(refused.value).endswith("... and 10 more")


@pytest.mark.parametrize("name", ["a", "A-1_b", "0", "a" * 63])
def test_a_name_that_is_taken(name: str) -> None:
    """Letters, digits, _ and -, up to 63 of them."""
    assert TypeAdapter(Name).validate_python(name) == name


@pytest.mark.parametrize("name", ["", "_a", "-a", "a.b", "a/b", "a b", "ä", "a:b", "a\n", "a" * 64, "../a", "a\u202e"])
def test_a_name_that_is_refused(name: str) -> None:
    """What has a meaning in a path, on a command line or in an external id is in no name."""
    with pytest.raises(ValueError, match="a name has 1 to 63 letters"):
        TypeAdapter(Name).validate_python(name)


def test_a_secret_file_that_is_no_text(tmp_path: Path) -> None:
    """A key in binary form is a wrong config, not a defect."""
    (tmp_path / "key").write_bytes(b"\xff\x00")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        Secret("file:key", tmp_path).reveal()


def test_keys_that_begin_with_x_are_ignored(tmp_path: Path) -> None:
    """They may stand in every section, with any content; among names that the user chooses they are names."""
    whole = read(tmp_path, "x-a: {b: [1]}\nname: x\nparts: {x-b: {size: 2, x-c: 1}}")
    assert whole.parts == {"x-b": Part(size=2)}


def test_variables_are_replaced_in_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number is read from the text of a variable; a reference to a secret and a doubled dollar stay."""
    monkeypatch.setenv("SIZE", "17")
    text = 'name: "$${SIZE} ${SIZE:-3} ${NONE:-4}"\nparts: {a: {size: "${SIZE}"}}\ntoken: env:SIZE'
    whole = read(tmp_path, text)
    assert whole.name == "${SIZE} 17 4"
    assert whole.parts["a"].size == 17
    assert whole.token == Secret("env:SIZE", tmp_path)


def test_later_files_override_earlier_ones(tmp_path: Path) -> None:
    """Sections are merged, a finding names the file of its value, and paths are relative to the first file."""
    first, second, third = tmp_path / "1.yaml", tmp_path / "other" / "2.yaml", tmp_path / "3.yaml"
    second.parent.mkdir()
    first.write_text("name: x\nparts: {a: {size: 1, label: l}, b: {}}\ntoken: file:key")
    second.write_text("parts: {a: {size: 2}}")
    third.write_text("name: y\nparts:\n  b: {szie: 7}\n  a: {label: 1}")
    document = config_file.read_config_with_overrides(first, second)
    whole = document.validated_as_model(Whole, document.data)
    assert (whole.name, whole.parts["a"]) == ("x", Part(size=2, label="l"))
    assert whole.token == Secret("file:key", tmp_path)
    document = config_file.read_config_with_overrides(first, second, third)
    with pytest.raises(ConfigError) as refused:
        document.validated_as_model(Whole, document.data)
    assert f"{third}:3:7: parts.b.szie: unknown key" in str(refused.value)
    assert f"{third}:4:7: parts.a.label: must be text: quote numbers" in str(refused.value)


def test_a_missing_override_is_named(tmp_path: Path) -> None:
    """The message names the file that is missing."""
    (tmp_path / "c.yaml").write_text("name: x")
    with pytest.raises(ConfigError, match="no such config file") as refused:
        config_file.read_config_with_overrides(tmp_path / "c.yaml", tmp_path / "none.yaml")
    assert refused.value.where == str(tmp_path / "none.yaml")
