"""The whole text of an author's exception, and its lines of code, for those who ask for all data."""

from __future__ import annotations

from collections.abc import Iterator
from linecache import getline
from traceback import walk_tb

from crossdock.errors import ConfigError, CrossdockError, RecordError
from crossdock.printable import printable
from crossdock.values.author_code import AuthorCodeError, is_module_of_author, secrets_of, unmasked_text
from crossdock.values.redaction import redacted


def author_traceback_lines(error: CrossdockError, settings: object = None) -> list[str]:
    """Return lines about the exceptions that *error* stands for. Secrets in *settings* are masked, and data is not."""
    is_about_code = isinstance(error, AuthorCodeError | ConfigError) or (
        isinstance(error, RecordError) and error.code in {"mapping_failed", "target_failed"}
    )
    lines: list[str] = []
    secrets = set(secrets_of(settings))
    for each in (error, *_causes(error)):
        if isinstance(each, AuthorCodeError):
            secrets.update(secrets_of(each.settings))
    for each in _causes(error):
        frames = list(_frame_lines(each))
        if frames or (is_about_code and not isinstance(each, CrossdockError)):
            lines += [*f"{type(each).__name__}: {unmasked_text(each)}".splitlines(), *frames]
    return [printable(redacted(line, secrets)) for line in lines]


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    following = error.__cause__ or error.__context__
    while following is not None and id(following) not in seen:
        yield following
        seen.add(id(following))
        following = following.__cause__ or following.__context__


def _frame_lines(error: BaseException) -> Iterator[str]:
    for frame, line in walk_tb(error.__traceback__):
        if is_module_of_author(str(frame.f_globals.get("__name__"))):
            file = frame.f_code.co_filename
            yield f"  line {line} of {file}, in {frame.f_code.co_name}: {getline(file, line, frame.f_globals).strip()}"
