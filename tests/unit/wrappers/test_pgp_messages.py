"""PGP messages as GnuPG writes them, and what is refused of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.pgp_senders import PASSPHRASE, Senders
from tests.unit.wrappers.unwrapping import contents, reading, refusal, writing

from crossdock.errors import ConfigError
from crossdock.reading.wrappers.wrapping_and_unwrapping import wrap_file

STOCK = b"SKU,QTY\n" + b"".join(b"%05d,%d\n" % (n, n % 7) for n in range(9_000))
SMALL = b"SKU,QTY\n0017,5\n- a dash\n"


@pytest.fixture(autouse=True)
def _passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("WRONG", "another")


def own(people: Senders, name: str = "bob", passphrase: str | None = "env:PASSPHRASE") -> dict[str, str]:
    key = {"key": f"file:{people.secret(name)}"}
    return key if passphrase is None else {**key, "passphrase": passphrase}


def secret(people: Senders, *signers: str, **key: Any) -> dict[str, Any]:
    """A layer that is encrypted to Bob and signed by Alice, or by *signers*."""
    by = [str(people.public(name)) for name in signers or ("alice",)]
    return {"kind": "pgp", "decrypt": own(people, **key), "signed_by": by}


def signed(people: Senders) -> dict[str, Any]:
    return {"kind": "pgp", "signed_by": [str(people.public("alice"))]}


def test_what_gnupg_writes_is_read(people: Senders) -> None:
    """Compressed or not, in ASCII armor, to several people, to one who is not named, and signed by others as well."""
    mallory = ("--recipient", "mallory@example.com")
    for options in (
        (),
        ("--armor",),
        ("--compress-algo", "none"),
        ("--compress-algo", "bzip2", "--armor"),
        mallory,
        ("--throw-keyids",),
        ("--local-user", "mallory@example.com"),
    ):
        data = people.message(STOCK, *options, to="bob", by="alice")
        assert contents(data, secret(people)) == {"out/F": STOCK}, options
    packed = subprocess.run(("gzip", "-c"), input=STOCK, capture_output=True, check=True).stdout
    assert contents(people.message(packed, to="bob", by="alice"), secret(people), "gzip") == {"out/F": STOCK}


def test_signed_messages_are_read(people: Senders) -> None:
    """With the file in them, in the forms that GnuPG has; a clear-signed text comes without the signature."""
    for options in ((), ("--armor",), ("--compress-algo", "none")):
        assert contents(people.message(STOCK, *options, by="alice"), signed(people)) == {"out/F": STOCK}, options
    clear = people.gpg("--local-user", "alice@example.com", "--clear-sign", content=SMALL)
    assert contents(clear, signed(people)) == {"out/F": SMALL}
    for data in (clear + b"0018,5\n", b"0018,5\n" + clear, clear.replace(b"0017", b"0018"), clear[:-30]):
        assert refusal(data, signed(people)), "what is not signed is not read"


def test_what_is_not_signed_as_declared_is_refused(people: Senders) -> None:
    """Not signed, signed by another, with a key that has expired, or with a broken digest."""
    layer, made = secret(people), {"to": "bob", "by": "alice"}
    assert "the PGP message is not signed" in refusal(people.message(STOCK, to="bob"), layer)
    told = refusal(people.message(STOCK, to="bob", by="mallory"), layer)
    assert f"signed by another key than the declared ones, {people.fingerprint('mallory')}" in told
    by_bob = people.message(STOCK, "--passphrase", PASSPHRASE, to="bob", by="bob")
    assert "signed by another key than the declared ones" in refusal(by_bob, layer), "which is in the key ring, too"
    old = people.message(STOCK, "--faked-system-time", "20240601T000000", to="bob", by="eve")
    assert "with a key that has expired" in refusal(old, secret(people, "eve"))
    assert "with SHA-1" in refusal(people.message(STOCK, "--digest-algo", "SHA1", **made), layer)
    pinned = layer | {"signed_by": [*layer["signed_by"], people.fingerprint("alice").lower()]}
    assert contents(people.message(STOCK, **made), pinned) == {"out/F": STOCK}
    both = secret(people, "alice", "mallory")
    both["signed_by"].append(people.fingerprint("alice"))
    assert "another key" in refusal(people.message(STOCK, to="bob", by="mallory"), both), "a fingerprint narrows"


def test_what_cannot_be_decrypted_is_refused(people: Senders) -> None:
    """Encrypted to another, with a password, not at all; or with the wrong passphrase for the key."""
    good = people.message(STOCK, to="bob", by="alice")
    assert "encrypted to another key" in refusal(people.message(STOCK, to="mallory", by="alice"), secret(people))
    assert "passphrase of the key is wrong" in refusal(good, secret(people, passphrase="env:WRONG"))
    assert "passphrase of the key is wrong" in refusal(good, secret(people, passphrase=None))
    assert "is not encrypted, as declared" in refusal(people.message(STOCK, by="alice"), secret(people))
    assert "no key is declared" in refusal(good, signed(people))
    word = people.gpg("--passphrase", "x", "--symmetric", content=STOCK)
    assert "encrypted with a password" in refusal(word, secret(people))


def test_damaged_messages_are_refused(people: Senders) -> None:
    """Cut, changed, twice, with other data behind, in damaged armor, or what is no message at all."""
    layer = secret(people)
    for options in ((), ("--compress-algo", "none")):
        good = people.message(STOCK, *options, to="bob", by="alice")
        changed = bytearray(good)
        changed[len(good) // 2] ^= 1
        for data in (good[:-1], good[: len(good) // 2], bytes(changed), good + good, good + b"\n", good + b"x" * 99):
            assert refusal(data, layer).startswith("out/F: the PGP message "), options
    armored = people.message(STOCK, "--armor", to="bob", by="alice")
    assert contents(b"\n  " + armored + b"\n", layer) == {"out/F": STOCK}
    middle = armored[:800] + b"\0" + armored[801:]
    for data in (armored + b"0018,5\n", armored[:-60], armored[: len(armored) // 2], middle, armored + armored):
        assert refusal(data, layer).startswith("out/F: the PGP message ")
    beside = people.gpg("--local-user", "alice@example.com", "--detach-sign", content=STOCK)
    assert "is a signature without the file" in refusal(beside, signed(people))
    assert "is a key, and no message" in refusal(people.gpg("--export", "alice@example.com"), layer)
    assert "has no integrity protection" in refusal(b"\xc9\x04abcd", layer)
    assert "does not begin so" in refusal(STOCK, layer)
    assert "unpack to" in refusal(people.message(bytes(20_000_000), to="bob", by="alice"), layer)


def test_keys_that_cannot_be_used_are_named(people: Senders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a key, a secret key in the place of a public one and the other way, and no GnuPG."""
    good, layer = people.message(STOCK, to="bob", by="alice"), secret(people)
    nothing = tmp_path / "nothing.asc"
    nothing.write_text("nothing")
    public = tmp_path / "public.asc"
    public.touch(0o600)
    public.write_bytes(people.public("bob").read_bytes())
    unknown = "0" * 40
    for wrong, told in (
        (layer | {"signed_by": [str(nothing)]}, "holds no public key of PGP"),
        (layer | {"signed_by": [str(tmp_path / "missing.asc")]}, "cannot be read: No such file"),
        (layer | {"signed_by": [str(people.secret("alice"))]}, "holds a secret key"),
        (layer | {"signed_by": [*layer["signed_by"], unknown]}, f"no file of signed_by holds the key {unknown}"),
        (layer | {"decrypt": {"key": f"file:{public}"}}, "is no secret key of PGP"),
    ):
        with pytest.raises(ConfigError, match=told):
            contents(good, wrong)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ConfigError, match="PGP needs the program gpg"):
        contents(good, layer)


def test_the_settings_say_what_can_be_read_and_written(people: Senders) -> None:
    """Reading needs a key or a signer whose key is there, writing a recipient or a key to sign with."""
    for layer, told in (
        ({"kind": "pgp"}, "give decrypt, signed_by or both"),
        ({"kind": "pgp", "signed_by": ["0" * 40]}, "needs a file with its public key"),
        (secret(people) | {"armor": True}, "are for files that are written"),
        ({"kind": "pgp", "signed_by": ["a.asc"], "decrypt": {"key": "literal"}}, "a secret is never written here"),
    ):
        with pytest.raises(ValidationError, match=told):
            reading(layer)
    for layer, told in (
        ({"kind": "pgp"}, "give encrypt_to, sign_with or both"),
        (secret(people) | {"sign_with": own(people)}, "are for files that are read"),
        ({"kind": "zip", "members": "*"}, "is for files that are read"),
    ):
        with pytest.raises(ValidationError, match=told):
            writing(layer)


def test_what_is_written_is_read_by_others(people: Senders, tmp_path: Path) -> None:
    """By GnuPG, and by another implementation of OpenPGP, which also writes what is read here."""
    import pysequoia

    layer = {"kind": "pgp", "encrypt_to": [str(people.public("mallory"))], "sign_with": own(people)}
    path = wrap_file(STOCK, writing(layer | {"armor": True}), name="stock.csv", folder=tmp_path)
    assert path.name == "stock.csv.pgp"
    assert people.gpg("--decrypt", content=path.read_bytes()) == STOCK
    mallory = pysequoia.Tsk.from_file(str(people.secret("mallory")))
    assert pysequoia.decrypt(path.read_bytes(), mallory.decryptor()).bytes == STOCK
    bob, alice = (pysequoia.Cert.from_file(str(people.public(name))) for name in ("bob", "alice"))
    signer = pysequoia.Tsk.from_file(str(people.secret("alice"))).signer()
    assert contents(pysequoia.encrypt(STOCK, [bob], signer), secret(people)) == {"out/F": STOCK}
    assert "is not signed" in refusal(pysequoia.encrypt(STOCK, [bob]), secret(people))
    assert contents(pysequoia.sign(signer, STOCK, armor=False), signed(people)) == {"out/F": STOCK}
    assert alice.fingerprint.upper() == people.fingerprint("alice")
    expired = {"kind": "pgp", "encrypt_to": [str(people.public("eve"))]}
    for wrong in (expired, {"kind": "pgp", "sign_with": own(people, passphrase="env:WRONG")}):
        with pytest.raises(ConfigError, match="gpg cannot use the key of"):
            wrap_file(STOCK, writing(wrong), name="stock.csv", folder=tmp_path)
