"""The guard around all code of authors. Its exceptions become one error, with the place and a masked text.

Texts of authors are shown, but not what may be data in them (law 8): secrets, values of the record at hand, mail
addresses, telephone numbers, and quoted values that the code does not contain itself.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from linecache import getline
from traceback import walk_tb
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from pydantic import ValidationError

from crossdock.errors import (
    ConfigError,
    ConnectorError,
    CrossdockError,
    FindingsError,
    RecordError,
    RefusedError,
    RemoteError,
)
from crossdock.printable import is_storable, mask_secrets, printable
from crossdock.values.config_base_types import secrets_in
from crossdock.values.config_file import message_of_pydantic_error
from crossdock.values.json_paths import texts_within

MODULE_PREFIX = "crossdock_mapping_"
"""The prefix of modules that are loaded from files beside a config."""
AUTH = "auth"
"""The method name in errors of an author's `httpx.Auth` that failed before the request was sent."""
HINT = "fix the code at this place; nothing is lost, and the next run tries again"
_ON_PURPOSE = ConfigError | ConnectorError | RefusedError | RemoteError
_EXIT_CODES = {2, 3, 4}
"""The exit codes of errors that authors may raise. Others are mistakes unless crossdock's own code raised them."""
_MAX_LENGTH = 500  # characters of an author's text
_LINES_END = 1 << 63  # the state stores 64 bits
_READ_AT_MOST = 4_000  # characters of a text that are masked
_MASK = "(data)"
_WORD = re.compile(r"[\w@.+-]{3,}")
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_MAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+")
_TELEPHONE = re.compile(r"\+?\d[\d ()/.-]{6,}\d")
_TYPES = frozenset({"NoneType", "Decimal"})  # in the texts of most mistakes
_ABSTRACT = re.compile(
    "Can't instantiate abstract class ([A-Za-z0-9_]+) with(?:out an implementation for)? abstract (methods? .*)"
)
_PART = re.compile(r"[\w -]+")  # of the place of a finding
_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:[.-][a-z0-9_]+)*")  # of a member, a column or an encoding


class AuthorCodeError(ConnectorError):
    """An author's code raised an exception or returned a wrong value."""

    def __init__(
        self, method: str, what: str, *, where: str | None = None, code: object = None, settings: object = None
    ) -> None:
        super().__init__(f"{method} {what}", where=where, hint=HINT)
        self.method, self._code, self.settings = method, code, settings

    def as_record_error(self, reason: str, data: Iterable[Any]) -> RecordError:
        """Return the reason for the dead letter of the record with *data*, whose values are masked."""
        cause = self.__cause__
        if cause is None:
            return RecordError(reason, shortened_text(self.message))
        what = masked_exception_text_with_place(cause, self._code, self.method, settings=self.settings, data=data)
        return RecordError(reason, f"{self.method} raised {what}")


@contextmanager
def convert_author_errors(
    method: str,
    where: str | None,
    *,
    code: object = None,
    settings: object = None,
    data: Iterable[Any] = (),
    after: Callable[[], str | None] = lambda: None,
    only_authors: bool = False,
) -> Iterator[None]:
    """Turn exceptions of an author's code into `AuthorCodeError`, except interruptions and errors raised on purpose.

    Args:
        code: The function or its object. Its first line is shown if the traceback has no frame of an author.
        settings: The settings of the connection, whose secrets are masked.
        data: The input of the code, whose values are masked.
        after: Returns the file or page that was read last, or None.
        only_authors: Whether an exception without a frame of an author is a defect of crossdock, and is not changed.
    """
    try:
        yield
    except BaseException as error:
        if _passes_unchanged(error) or (only_authors and not has_frame_of_author(error)):
            raise
        read = f" after {shortened_text(source)}" if (source := after()) else ""
        what = f"raised {masked_exception_text_with_place(error, code, method, settings=settings, data=data)}{read}"
        raise AuthorCodeError(method, what, where=where, code=code, settings=settings) from error


def is_interruption_or_engine_error(error: BaseException) -> bool:
    """Return whether *error* is an interruption, a generator's end or crossdock's own, and no failure of an author."""
    if isinstance(error, GeneratorExit):
        return not has_frame_of_author(error)
    if isinstance(error, CrossdockError) and not isinstance(error, RecordError | _ON_PURPOSE):
        return not _is_raised_by_author(error)
    return isinstance(error, KeyboardInterrupt)


def _passes_unchanged(error: BaseException) -> bool:
    return is_interruption_or_engine_error(error) or (
        isinstance(error, _ON_PURPOSE) and _is_readable_and_storable(error)
    )


def _is_readable_and_storable(error: CrossdockError) -> bool:
    """Return whether *error* can be shown and stored. An author's class may not have called the constructor."""
    with _suppress_author_errors():
        str(error)
        texts: list[Any] = [
            error.message,
            error.code,
            *(each for each in (error.where, error.hint) if each is not None),
        ]
        texts += error.lines if isinstance(error, FindingsError) else []
        return all(isinstance(each, str) and is_storable(each) for each in texts) and error.exit_code in _EXIT_CODES
    return False


@contextmanager
def _suppress_author_errors() -> Iterator[None]:
    """Suppress what the members of an author's error raise, which may be anything."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001, S110  the caller says so
        pass


def has_frame_of_author(error: BaseException) -> bool:
    return any(is_module_of_author(module) for module, _, _ in _all_frames_of_traceback(error.__traceback__))


def author_code_error_or_none(error: BaseException) -> AuthorCodeError | None:
    """Return the error if an author's code raised *error* outside a guard; None if it is a defect of crossdock."""
    if isinstance(error, CrossdockError | KeyboardInterrupt) or not has_frame_of_author(error):
        return None
    return AuthorCodeError("an author's code", f"raised {masked_exception_text_with_place(error, None, '')}")


def _is_raised_by_author(error: BaseException) -> bool:
    frames = list(_all_frames_of_traceback(error.__traceback__))
    return bool(frames) and not frames[-1][0].startswith("crossdock.")


def masked_exception_text_with_place(
    error: BaseException, code: object, method: str, *, settings: object = None, data: Iterable[Any] = ()
) -> str:
    """Return the class of *error*, the file and line of the author's code that raised it, and its masked text."""
    name, text = shortened_text(type(error).__name__), masked_error_text(error, settings, data)
    text = f": {text}" if text else ""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{name} in line {error.lineno} of {shortened_text(error.filename)}: {shortened_text(error.msg)}"
    if (frame := _frame_of_author(error, code)) is not None:
        _, file, line = frame
        return f"{name} in line {line} of {shortened_text(file)}{text}"
    inner = _code_object_of_function(code, method)
    place = f" in {method}, line {inner.co_firstlineno} of {shortened_text(inner.co_filename)}" if inner else ""
    return f"{name}{place}{text}"


def class_name_with_place(kind: type) -> str:
    """Return the name of an author's class, with the line and the file of its source."""
    name = shortened_text(kind.__name__)
    try:
        return f"{name}, line {inspect.getsourcelines(kind)[1]} of {shortened_text(str(inspect.getsourcefile(kind)))}"
    except (OSError, TypeError):  # without source
        return name


def text_with_line_of_code(code: object, method: str) -> str:
    inner = _code_object_of_function(code, method)
    return f"; see line {inner.co_firstlineno} of {shortened_text(inner.co_filename)}" if inner else ""


def type_name_of_wrong_value(value: object) -> str:
    """Return the type of a wrong value, or that a class is given in place of an object."""
    if isinstance(value, type):
        return f"the class {shortened_text(value.__name__)}, and no object made by it,"
    return "None" if value is None else shortened_text(type(value).__name__)


def storable_copy_of_error(error: RecordError) -> RecordError | None:
    """Return a copy of *error* that can be stored; None if an author's class has members that cannot be read."""
    with _suppress_author_errors():
        code: Any = error.code
        pointer = None if error.pointer is None else shortened_text(str(error.pointer))
        short = RecordError(code, shortened_text(str(error.message)), pointer=pointer)
        short.line = error.line if type(error.line) is int and 0 <= error.line < _LINES_END else None
        return short if isinstance(code, str) else None
    return None


def shortened_text(text: str) -> str:
    return printable(text[:_MAX_LENGTH])


# ---- where


def is_module_of_author(module: str) -> bool:
    """Return whether *module* is neither of crossdock nor of a library."""
    package = module.partition(".")[0]
    return package not in sys.stdlib_module_names and package not in _LIBRARIES


_LIBRARIES = frozenset({
    "crossdock", "anyio", "apscheduler", "click", "distributed", "dask", "h11", "httpcore", "httpx", "jinja2",
    "opentelemetry", "paramiko", "polars", "prometheus_client", "psycopg", "pydantic", "pydantic_core",
    "python_calamine", "rich", "sqlalchemy", "starlette", "tornado", "uvicorn", "yaml",
})  # fmt: skip
"""Packages whose code is not an author's, in addition to the standard library."""


def _all_frames_of_traceback(traceback: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    for frame, line in walk_tb(traceback):
        yield _module_name_of_frame(frame), frame.f_code.co_filename, line


def _module_name_of_frame(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _frame_of_author(error: BaseException, code: object) -> tuple[str, str, int] | None:
    """Return the innermost frame of the package of *code*, otherwise of any author, and otherwise of any library."""
    frames = list(_all_frames_of_traceback(error.__traceback__))
    packages = {package for package in _packages_of_code(code) if package != "crossdock"}
    choices = (
        [each for each in frames if each[0].startswith(MODULE_PREFIX)],
        [each for each in frames if each[0].partition(".")[0] in packages],
        [each for each in frames if is_module_of_author(each[0])],
        [each for each in frames if not each[0].startswith(_ENGINE)],
    )
    return next((chosen[-1] for chosen in choices if chosen), None)


_ENGINE = tuple(
    f"crossdock.{name}"
    for name in (
        "connector",
        "delta.",
        "config.",
        "runs.",
        "writing.",
        "services.inbox.",
        "cli.",
        "reading.sources.stream_context",
        "reading.sources.api_declaration",
        "values.author_code_errors",
    )
)


def _packages_of_code(code: object) -> set[str]:
    owner = getattr(code, "__self__", code)
    modules = (getattr(each, "__module__", None) for each in (code, owner, type(owner)))
    return {module.partition(".")[0] for module in modules if isinstance(module, str)} - {"builtins", "functools"}


def _code_object_of_function(code: object, method: str) -> CodeType | None:
    found = getattr(code, "__code__", None)
    if found is None and code is not None:
        found = getattr(getattr(type(code), method, None), "__code__", None)
    return found if isinstance(found, CodeType) else None


# ---- what


def masked_error_text(error: BaseException, settings: object = None, data: Iterable[Any] = ()) -> str:
    """Return the start of the masked text of *error*, also if its text cannot be read."""
    text = unmasked_error_text(error)[:_READ_AT_MOST]
    known = "\0".join(_constants_in_frames(error.__traceback__)).casefold()
    text = mask_secrets(_ABSTRACT.sub(r"class \1 lacks \2", text), secret_values_in_settings(settings))
    text = _mask_words(text, _words_in_data(data), known)
    text = _QUOTED.sub(lambda found: _quotation_masked_unless_known(found, known), text)
    text = _TELEPHONE.sub(_MASK, _MAIL.sub(_MASK, text))
    return shortened_text(text)


def unmasked_error_text(error: BaseException) -> str:
    """Return the text of *error*, which may have data, also if an author's class cannot give it."""
    try:
        return str(_error_text_by_class(error))
    except KeyboardInterrupt:
        raise
    except BaseException as unreadable:  # noqa: BLE001  an author's `__str__` may raise anything
        return f"its text cannot be read: {shortened_text(type(unreadable).__name__)}"


def _error_text_by_class(error: BaseException) -> str:
    if isinstance(error, ValidationError):  # its own text quotes the values
        return "; ".join(map(_validation_finding, error.errors(include_url=False, include_input=False)[:3]))
    if isinstance(error, RecordError):
        return f"{error.pointer}: {error.message}" if error.pointer else error.message
    if isinstance(error, CrossdockError) and not hasattr(error, "message"):
        return Exception.__str__(error)  # of a class that does not call our constructor
    return str(error)


def _validation_finding(item: Any) -> str:
    key = item["ctx"]["key"] if item["type"] == "unknown_key" else ()
    parts = (*item["loc"], *(key if isinstance(key, tuple) else (key,)))
    place = ".".join(part for part in map(str, parts) if _PART.fullmatch(part))  # others name choices of a union
    return f"{place}: {message_of_pydantic_error(item)}" if place else message_of_pydantic_error(item)


def _quotation_masked_unless_known(found: re.Match[str], known: str) -> str:
    inner = found[1] if found[1] is not None else found[2]
    is_type = inner.isidentifier() and found.string.startswith(" object", found.end())  # a sentence of Python
    shown = not inner or is_type or inner.casefold() in known or inner in _TYPES or _NAME.fullmatch(inner)
    return found[0] if shown else f"{found[0][0]}{_MASK}{found[0][0]}"


def _constants_in_frames(traceback: TracebackType | None) -> Iterator[str]:
    for frame, _ in walk_tb(traceback):
        if not _module_name_of_frame(frame).startswith("crossdock."):
            yield from _constants_of_code(frame.f_code)


def _constants_of_code(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from (each for each in constant if isinstance(each, str))


def secret_values_in_settings(settings: object) -> Iterator[str]:
    for secret in secrets_in(settings):
        with suppress(ConfigError):  # a secret that cannot be read is in no text
            yield secret.reveal()


def _words_in_data(data: Iterable[Any]) -> frozenset[str]:
    return frozenset(word.casefold() for value in data for text in texts_within(value) for word in _WORD.findall(text))


def _mask_words(text: str, words: frozenset[str], known: str) -> str:
    """Remove *words* that the code does not contain itself."""
    if not words:
        return text

    def mask(found: re.Match[str]) -> str:
        word = found[0].casefold()
        return _MASK if word in words and word not in known else found[0]

    return _WORD.sub(mask, text)


def author_traceback_lines(error: CrossdockError, settings: object = None) -> list[str]:
    """Return lines about the exceptions that *error* stands for. Secrets in *settings* are masked, and data is not."""
    is_about_code = isinstance(error, AuthorCodeError | ConfigError) or (
        isinstance(error, RecordError) and error.code in {"mapping_failed", "target_failed"}
    )
    lines: list[str] = []
    secrets = set(secret_values_in_settings(settings))
    for each in (error, *_causes(error)):
        if isinstance(each, AuthorCodeError):
            secrets.update(secret_values_in_settings(each.settings))
    for each in _causes(error):
        frames = list(_frame_lines(each))
        if frames or (is_about_code and not isinstance(each, CrossdockError)):
            lines += [*f"{type(each).__name__}: {unmasked_error_text(each)}".splitlines(), *frames]
    return [printable(mask_secrets(line, secrets)) for line in lines]


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


# ---- misspelt attributes, which would have no effect


_NEAR = 0.8  # ``exsisting`` is as near to ``existing``; ``fetch_all`` is not to ``fetch``
_NONE = object()


def misspelt_attribute_class_and_message(made: object, fits: Callable[[str, Any], bool]) -> tuple[type, str] | None:
    """Return the class that has an attribute which must be meant for one of the base class, and the message, or None.

    Other names are the author's own: private ones, those of a class that also has the right name, functions with
    other parameters, and values that do not fit.

    Args:
        made: An object of an author's class, which extends one of crossdock's.
        fits: Whether a value can be that of the attribute of the base class with this name.
    """
    kinds = type(made).__mro__
    bases = [vars(each) for each in kinds if _is_crossdock_class(each)]
    known = {name: _NONE for each in kinds if _is_crossdock_class(each) for name in inspect.get_annotations(each)}
    known |= {name: value for members in reversed(bases) for name, value in members.items()}
    known = {name: value for name, value in known.items() if not name.startswith("_")}
    meant = {name: value for name, value in known.items() if not isinstance(value, property)}
    for owner, members in _author_classes_with_members(made):
        for name, value in members.items():
            right = None if name.startswith("_") or name in known else _nearest(name, meant)
            if (
                right is not None
                and right not in members
                and _is_meant_for_base_attribute(made, name, value, right, meant[right], fits)
            ):
                return owner, f"{name}: did you mean {right!r}?"
    return None


def _is_crossdock_class(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "crossdock"


def _author_classes_with_members(made: object) -> Iterator[tuple[type, Mapping[str, Any]]]:
    yield type(made), getattr(made, "__dict__", {})
    for kind in type(made).__mro__:
        if is_module_of_author(kind.__module__):
            yield kind, vars(kind)


def _nearest(name: str, known: Mapping[str, Any]) -> str | None:
    spelled = {each.lower(): each for each in known if abs(len(each) - len(name)) <= 3}
    return next((spelled[each] for each in get_close_matches(name.lower(), spelled, n=1, cutoff=_NEAR)), None)


def _is_meant_for_base_attribute(
    made: object, name: str, value: Any, right: str, theirs: Any, fits: Callable[[str, Any], bool]
) -> bool:
    if isinstance(value, FunctionType) or isinstance(theirs, FunctionType):
        both = isinstance(value, FunctionType) and isinstance(theirs, FunctionType)
        return both and _parameter_count(value) == _parameter_count(theirs)
    given = getattr(made, name) if hasattr(type(value), "__get__") else value
    return given is not None and fits(right, given) and given != theirs  # its default has no effect either


def _parameter_count(function: FunctionType) -> int:
    return function.__code__.co_argcount
