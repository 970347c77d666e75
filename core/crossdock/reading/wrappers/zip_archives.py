"""zip archives (APPNOTE.TXT), plain or encrypted with AES: each member is a file of its own.

The list of members is read by `zipfile`; the members themselves are unpacked here, because `zipfile` takes what the
list says for granted, such as the size of a member.

AES is as WinZip specified it ("AES Encryption Information", AE-1 and AE-2): a member is salt, two bytes that verify the
password, the encrypted data, and ten bytes of its HMAC-SHA1.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from msgspec import Struct
from pydantic import Field

from crossdock.errors import ConfigError, RefusedError
from crossdock.printable import printable
from crossdock.reading.wrappers.stream_compression import CompressionFormat, UnpackedStream, ZlibDecoder
from crossdock.reading.wrappers.wrapper import (
    BLOCK,
    NamedFile,
    Readable,
    UnpackingMeter,
    UnreadArchiveMembers,
    WorkFolder,
    WrapperSettings,
    read_blocks,
)
from crossdock.values.config_base_types import SecretRef

AES_METHOD = 99
AES_HEADER_ID = 0x9901
_ITERATIONS = 1000
_VERIFIER, MAC_BYTES = 2, 10
_AES_BLOCK = 16


class AesHeader(Struct, frozen=True):
    """What a member's extra field says. *has_crc*: whether its checksum is that of the content (AE-1)."""

    has_crc: bool
    strength: int
    method: int

    @property
    def salt_bytes(self) -> int:
        return 4 * (self.strength + 1)

    @property
    def overhead_bytes(self) -> int:
        return self.salt_bytes + _VERIFIER + MAC_BYTES


def parse_aes_header(extra: bytes) -> AesHeader | None:
    while len(extra) >= 4:
        kind, size = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        data, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == AES_HEADER_ID and len(data) == 7 and data[2:4] == b"AE" and 1 <= data[4] <= 3 and data[0] in {1, 2}:
            return AesHeader(data[0] == 1, data[4], int.from_bytes(data[5:7], "little"))
    return None


def aes_extra_field(method: int) -> bytes:
    """Return the extra field of a member with *method*, encrypted with a key of 256 bits, without a checksum."""
    return b"\x01\x99\x07\x00\x02\x00AE\x03" + method.to_bytes(2, "little")


class AesMemberCipher:
    """The key stream and the HMAC of one member. Data is handled in order, in blocks of any size."""

    def __init__(self, password: bytes, salt: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415  few zips have one

        length = 2 * len(salt)
        material = hashlib.pbkdf2_hmac("sha1", password, salt, _ITERATIONS, 2 * length + _VERIFIER)
        self.verifier = material[2 * length :]
        self._hmac = hmac.new(material[length : 2 * length], digestmod="sha1")
        self._aes = Cipher(algorithms.AES(material[:length]), modes.ECB()).encryptor()  # noqa: S305  of counters
        self._counter, self._left = 1, b""

    def decrypted(self, data: bytes) -> bytes:
        self._hmac.update(data)
        return self._apply_key_stream(data)

    def encrypted(self, data: bytes) -> bytes:
        found = self._apply_key_stream(data)
        self._hmac.update(found)
        return found

    def mac(self) -> bytes:
        return self._hmac.digest()[:MAC_BYTES]

    def _apply_key_stream(self, data: bytes) -> bytes:
        """Combine *data* with the key stream: blocks that count up from 1, in little-endian order."""
        missing = len(data) - len(self._left)
        if missing > 0:
            number = -(-missing // _AES_BLOCK)
            counters = range(self._counter, self._counter + number)
            self._counter += number
            self._left += self._aes.update(b"".join(each.to_bytes(_AES_BLOCK, "little") for each in counters))
        stream, self._left = self._left[: len(data)], self._left[len(data) :]
        return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")


def encrypt_member_blocks(password: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    salt = secrets.token_bytes(16)
    cipher = AesMemberCipher(password, salt)
    yield salt + cipher.verifier
    for block in blocks:
        yield cipher.encrypted(block)
    yield cipher.mac()


MAX_DIRECTORY = 4 << 20
"""The limit for the list of members, in bytes, which is held in memory. An entry takes about a hundred."""
_LOCAL, _CENTRAL, _END, _END_64, _LOCATOR_64 = b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7"
_END_BYTES, _LOCATOR_BYTES = 22, 20
_HEADER = struct.Struct("<4s5H3L2H")
_ENCRYPTED, _SIZES_FOLLOW, _STRONG, _UTF_8, _MASKED = 1, 8, 0x40, 0x800, 0x2000
_IN_ZIP_64 = 0xFFFFFFFF
_MAX_NAME = 255
_AGAIN = "It is damaged or still being written: fetch it again."
_RAW_DEFLATE = CompressionFormat("zip", lambda _: False, lambda: ZlibDecoder(-15), lambda: (zlib.error,))
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that zip knows: the same content is wrapped in the same bytes


class ZipSettings(WrapperSettings):
    """A zip archive. Each member is a file of its own, with the name ARCHIVE/MEMBER."""

    kind: Literal["zip"]
    members: Annotated[str, Field(min_length=1, max_length=_MAX_NAME)] | None = None
    """A pattern of the members that are read, such as ``STOCK_*.csv`` or ``out/*.csv``; others are passed over, and the
    report names them.

    Without it all members are read, and one in a folder is refused.
    """
    password: SecretRef | None = None
    """The password of an archive that is encrypted with AES."""
    max_members: Annotated[int, Field(ge=1, le=10_000)] = 1000
    """The most members that are read."""

    @property
    def settings_that_choose_records(self) -> Mapping[str, Any]:
        return {} if self.members is None else {"members": self.members}

    def raise_unless_usable_for_writing(self) -> None:
        if self.members is not None:
            raise ValueError("zip.members: is for files that are read")


class ZipWrapper:
    settings, wrapping_description, file_name_ending = ZipSettings, "a zip archive", ".zip"

    def recognizes_head(self, head: bytes) -> bool:
        return head.startswith((_LOCAL, _END))

    def unwrap(self, part: NamedFile, settings: ZipSettings, work_folder: WorkFolder) -> Iterator[NamedFile]:
        password = settings.password.reveal().encode() if settings.password else None
        meter = work_folder.make_unpacking_meter(settings, part, "bytes of zip")
        with part.content.open("rb") as file, _open_archive_or_raise(file, part.name) as archive:
            chosen = _choose_members_or_raise(archive.infolist(), settings, part.name)
            if settings.members is not None:
                _add_members_passed_over(
                    archive.infolist(), chosen, settings.members, part.name, work_folder.passed_over
                )
            _raise_if_members_overlap(archive, part.name)
            for member in chosen:
                opened = _ZipMember(file, member, f"{part.name}/{member.filename}", password)
                content = work_folder.write_file(opened.unpack_and_check(meter))
                yield NamedFile(opened.name, content, member.date_time)
                meter.before += member.compress_size

    def wrap(self, part: NamedFile, settings: ZipSettings, work_folder: WorkFolder) -> Path:
        """Return an archive with one member, which has the name of *part*."""
        with part.content.open("rb") as file:
            if settings.password is not None:
                return work_folder.write_file(
                    _encrypt_file_into_archive(file, part.name, settings.password.reveal().encode())
                )
            path, info = work_folder.write_file(()), zipfile.ZipInfo(part.name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            is_large = file.seek(0, 2) > _IN_ZIP_64 >> 1
            file.seek(0)
            with (
                path.open("wb") as target,
                zipfile.ZipFile(target, "w") as archive,
                archive.open(info, "w", force_zip64=is_large) as member,
            ):
                for block in read_blocks(file):
                    member.write(block)
            return path


@contextmanager
def _open_archive_or_raise(file: BinaryIO, name: str) -> Iterator[zipfile.ZipFile]:
    _raise_if_end_or_list_wrong(file, name)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, struct.error) as error:
        raise RefusedError(
            "the list of members of the zip archive is damaged", where=name, hint=_AGAIN, code="file_damaged"
        ) from error
    with archive:
        yield archive


def _raise_if_end_or_list_wrong(file: BinaryIO, name: str) -> None:
    """Check the length of the list of members, which its reader holds in memory (APPNOTE.TXT, 4.3.14 to 4.3.16)."""
    size = file.seek(0, 2)
    start = max(0, size - _END_BYTES - 0xFFFF - _LOCATOR_BYTES)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        message = "the zip archive has no list of members, which is at its end"
        raise RefusedError(message, where=name, hint=_AGAIN, code="file_cut")
    end = tail[at : at + _END_BYTES]
    if start + at + _END_BYTES + int.from_bytes(end[20:22], "little") != size:
        hint = "Ask the sender to write it again; what follows the archive is not known."
        raise RefusedError("the zip archive is followed by other data", where=name, hint=hint, code="file_damaged")
    entries, length = int.from_bytes(end[10:12], "little"), int.from_bytes(end[12:16], "little")
    locator = tail[max(0, at - _LOCATOR_BYTES) : at]
    if locator.startswith(_LOCATOR_64):
        file.seek(min(int.from_bytes(locator[8:16], "little"), size))
        end_64 = file.read(56)
        if not end_64.startswith(_END_64):
            raise RefusedError(
                "the list of members of the zip archive is damaged", where=name, hint=_AGAIN, code="file_damaged"
            )
        entries, length = int.from_bytes(end_64[32:40], "little"), int.from_bytes(end_64[40:48], "little")
    if not entries:
        raise RefusedError(
            "the zip archive is empty",
            where=name,
            hint="Ask the sender for one with a file in it.",
            code="archive_members_wrong",
        )
    if length > MAX_DIRECTORY:
        message = f"the zip archive has {entries:,} members, whose list is too long"
        raise RefusedError(message, where=name, hint="Ask the sender for several archives.", code="file_damaged")


def _choose_members_or_raise(
    members: Sequence[zipfile.ZipInfo], settings: ZipSettings, name: str
) -> list[zipfile.ZipInfo]:
    counted = Counter(member.filename for member in members)
    for member in members:
        shown = printable(member.filename[:_MAX_NAME])
        if not _is_safe_name(member.orig_filename.removesuffix("/")):
            hint = "Ask the sender for names without '..', backslashes and control characters."
            raise RefusedError(
                f"member {shown!r} has an unsafe name", where=name, hint=hint, code="archive_members_wrong"
            )
        if settings.members is None and "/" in member.filename:
            hint = 'Declare which members are read, such as members: "FOLDER/*.csv", or ask for no folders.'
            raise RefusedError(
                f"member {shown!r} is {'' if member.is_dir() else 'in '}a folder",
                where=name,
                hint=hint,
                code="archive_members_wrong",
            )
        if counted[member.filename] > 1:
            hint = "Ask the sender for an archive in which each name is there once."
            raise RefusedError(
                f"there are {counted[member.filename]} members {shown!r}",
                where=name,
                hint=hint,
                code="archive_members_wrong",
            )
    chosen = [each for each in members if not each.is_dir() and _matches_pattern(each.filename, settings.members)]
    if not chosen:
        message = f"no member of the zip archive matches {settings.members!r}"
        raise RefusedError(
            message, where=name, hint="Correct members in the config, or ask the sender.", code="archive_members_wrong"
        )
    if len(chosen) > settings.max_members:
        message = f"the zip archive has {len(chosen):,} members"
        hint = f"The limit is {settings.max_members:,} (max_members). If the file is genuine, ask for it in parts."
        raise RefusedError(message, where=name, hint=hint, code="archive_members_wrong")
    return sorted(chosen, key=lambda each: each.filename)


def _is_safe_name(name: str) -> bool:
    if len(name) > _MAX_NAME or "\\" in name or ":" in name[:2] or not name.isprintable():
        return False
    return all(part not in {"", ".", ".."} for part in name.split("/"))


def _matches_pattern(name: str, pattern: str | None) -> bool:
    """Return whether *name* matches *pattern*, in which a wildcard stands for no slash."""
    if pattern is None:
        return True
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _add_members_passed_over(
    members: Sequence[zipfile.ZipInfo],
    chosen: Sequence[zipfile.ZipInfo],
    pattern: str,
    archive: str,
    passed_over: UnreadArchiveMembers,
) -> None:
    names = {member.filename for member in chosen}
    alike = set(map(_without_case_and_digits, names))
    for member in members:
        if member.is_dir() or member.filename in names:
            continue
        shown = printable(f"{archive}/{member.filename}")
        passed_over.names.append(shown)
        is_in_other_case = _matches_pattern(member.filename.lower(), pattern.lower())
        if is_in_other_case or _without_case_and_digits(member.filename) in alike:
            passed_over.lookalikes.append(shown)


def _without_case_and_digits(name: str) -> str:
    return re.sub("[0-9]", "", name.lower())


def _raise_if_members_overlap(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse members that share bytes, as those of bombs do."""
    ends, members = 0, sorted(archive.infolist(), key=lambda each: each.header_offset)
    for member in members:
        if 0 <= member.header_offset < ends:
            message = f"member {printable(member.filename)!r} overlaps another one"
            raise RefusedError(
                message, where=name, hint="It is damaged, or made to grow: do not use it.", code="file_damaged"
            )
        ends = member.header_offset + _HEADER.size + member.compress_size
    if ends > archive.start_dir or members[0].header_offset < 0:
        raise RefusedError(
            "the list of members of the zip archive is damaged", where=name, hint=_AGAIN, code="file_damaged"
        )


class _ZipMember:
    def __init__(self, file: BinaryIO, member: zipfile.ZipInfo, name: str, password: bytes | None) -> None:
        self._file, self._info, self.name, self._password = file, member, printable(name), password
        self._aes = self._aes_header_or_raise()
        method = self._aes.method if self._aes else member.compress_type
        if method not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            hint = "Ask the sender for the method deflate, which every program has."
            raise self._refusal(f"is packed with method {method}, which is not read", hint)
        self._is_packed = method == zipfile.ZIP_DEFLATED

    def unpack_and_check(self, meter: UnpackingMeter) -> Iterator[bytes]:
        self._verify_header_and_seek_data()
        section = _FileSection(self._file, self._info.compress_size, self._refusal)
        raw = self._decrypted_section(section, self._aes) if self._aes else section
        content: Readable = UnpackedStream(raw, _RAW_DEFLATE, meter, name=self.name) if self._is_packed else raw
        size = checksum = 0
        while block := content.read(BLOCK):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
            if not self._is_packed:
                meter.count_and_raise_if_over_limits(block, size)
            if size > self._info.file_size:
                break
            yield block
        if size != self._info.file_size or raw.read(1):
            raise self._refusal(f"is not {self._info.file_size:,} bytes long, as the archive says", _AGAIN)
        if isinstance(raw, _DecryptedSection):
            raw.raise_if_mac_wrong()
        if (self._aes is None or self._aes.has_crc) and checksum != self._info.CRC:
            raise self._refusal("has another checksum than the archive says", _AGAIN)

    def _aes_header_or_raise(self) -> AesHeader | None:
        flags = self._info.flag_bits
        if not flags & _ENCRYPTED:
            if self._password is not None:
                hint = "Remove password from the config, or ask the sender to encrypt it."
                raise self._refusal("is not encrypted, and a password is declared", hint)
            return None
        if self._password is None:
            hint = "Declare wrapped: [{kind: zip, password: env:NAME}]."
            raise self._refusal("is encrypted, and no password is declared", hint)
        found = parse_aes_header(self._info.extra) if self._info.compress_type == AES_METHOD else None
        if found is None or flags & (_STRONG | _MASKED):
            raise self._refusal("is encrypted, but not with AES", "Ask the sender for AES-256, which is safe.")
        if found.overhead_bytes > self._info.compress_size:
            raise self._refusal("is cut", _AGAIN)
        return found

    def _verify_header_and_seek_data(self) -> None:
        """Go to the data, behind a header that says the same as the list of members."""
        info = self._info
        self._file.seek(info.header_offset)
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_LOCAL):
            raise self._refusal("has no header where the archive says", _AGAIN)
        _, _, flags, method, _, _, checksum, packed, size, name_bytes, extra_bytes = _HEADER.unpack(header)
        found = self._file.read(name_bytes).decode("utf-8" if flags & _UTF_8 else "cp437", "replace")
        stated = [(method, info.compress_type), (flags & _ENCRYPTED, info.flag_bits & _ENCRYPTED)]
        if not flags & _SIZES_FOLLOW:
            known = [(checksum, info.CRC), (packed, info.compress_size), (size, info.file_size)]
            stated += [(one, other) for one, other in known if one != _IN_ZIP_64]
        if found != info.orig_filename or any(one != other for one, other in stated):
            raise self._refusal("has another name, size or checksum in its header than in the list of members", _AGAIN)
        self._file.seek(extra_bytes, 1)

    def _decrypted_section(self, raw: _FileSection, header: AesHeader) -> _DecryptedSection:
        assert self._password is not None
        cipher = AesMemberCipher(self._password, raw.read(header.salt_bytes))
        if not hmac.compare_digest(raw.read(len(cipher.verifier)), cipher.verifier):
            raise self._refusal("cannot be decrypted: the password is wrong", "Correct the secret, or ask the sender.")
        return _DecryptedSection(raw, cipher, self._refusal)

    def _refusal(self, message: str, hint: str) -> RefusedError:
        return RefusedError(f"the member {message}", where=self.name, hint=hint, code="archive_members_wrong")


class _FileSection:
    """The next *size* bytes of a file."""

    def __init__(self, file: BinaryIO, size: int, refused: Callable[[str, str], RefusedError]) -> None:
        self._file, self.left, self._refused = file, size, refused

    def read(self, size: int, /) -> bytes:
        wanted = min(size, self.left)
        data = self._file.read(wanted)
        if len(data) < wanted:
            raise self._refused("is cut", _AGAIN)
        self.left -= wanted
        return data


class _DecryptedSection:
    def __init__(self, raw: _FileSection, cipher: AesMemberCipher, refused: Callable[[str, str], RefusedError]) -> None:
        self._raw, self._cipher, self._refused = raw, cipher, refused

    def read(self, size: int, /) -> bytes:
        return self._cipher.decrypted(self._raw.read(min(size, self._raw.left - MAC_BYTES)))

    def raise_if_mac_wrong(self) -> None:
        if not hmac.compare_digest(self._raw.read(MAC_BYTES), self._cipher.mac()):
            raise self._refused("was changed after it was encrypted, or the password is wrong", _AGAIN)


def _encrypt_file_into_archive(file: BinaryIO, name: str, password: bytes) -> Iterator[bytes]:
    """Yield an archive with one encrypted member, whose sizes follow its data (APPNOTE.TXT, 4.3.9)."""
    raw_name, extra = name.encode(), aes_extra_field(zipfile.ZIP_DEFLATED)
    fixed = (51, _ENCRYPTED | _SIZES_FOLLOW | _UTF_8, AES_METHOD, 0, (1 << 5) | 1)
    yield _HEADER.pack(_LOCAL, *fixed, 0, 0, 0, len(raw_name), len(extra)) + raw_name + extra
    size = packed = 0

    def deflated() -> Iterator[bytes]:
        nonlocal size
        compressor = zlib.compressobj(wbits=-15)
        for block in read_blocks(file):
            size += len(block)
            yield compressor.compress(block)
        yield compressor.flush()

    for block in encrypt_member_blocks(password, deflated()):
        packed += len(block)
        yield block
    if max(size, packed) >= _IN_ZIP_64:
        raise ConfigError(
            "a file of 4 GB cannot be written to an encrypted zip archive",
            hint="write it in parts",
            code="file_too_large",
        )
    sizes = struct.pack("<3L", 0, packed, size)
    yield b"PK\7\x08" + sizes
    entry = struct.pack("<4s6H", _CENTRAL, 51, *fixed) + sizes
    entry += struct.pack("<5H2L", len(raw_name), len(extra), 0, 0, 0, 0, 0) + raw_name + extra
    directory = _HEADER.size + len(raw_name) + len(extra) + packed + 16
    yield entry + struct.pack("<4s4H2LH", _END, 0, 0, 1, 1, len(entry), directory, 0)
