"""The guard around a target's code: its exceptions and wrong results become errors, and it shares no mutable object."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from crossdock.errors import RecordError
from crossdock.printable import is_storable, printable
from crossdock.values.author_code_errors import (
    AuthorCodeError,
    class_name_with_place,
    convert_author_errors,
    misspelt_attribute_class_and_message,
    storable_copy_of_error,
    text_with_line_of_code,
)
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.api_target import ApiTarget
from crossdock.writing.targets.target import ConnectorTarget, Request, Target, Update, lacking_method_problem

BEFORE_SENDING = frozenset({
    "check_key", "name_of", "payload", "create", "create_from", "update", "delete", "batch", "stored_batch", "with_key",
    "look_up", "headers",
})  # fmt: skip
"""Methods whose `RecordError` is the reason of a dead letter, because nothing was sent."""
_INSTEAD: Mapping[str, Callable[[AuthorCodeError], Any]] = {
    "advice": str,
    "limit": lambda _: None,
    "also_changes": lambda _: (),
}
"""Replacements for results that decide nothing about the record. The run ends with the error."""


def take_unreported_errors(target: Target) -> Sequence[AuthorCodeError]:
    """Return errors in the code of *target* that affected no record and that no run has reported yet."""
    return target.take_unreported_errors() if isinstance(target, _GuardedTarget) else ()


def wrap_target_in_guard(own: ConnectorTarget, settings: object) -> ConnectorTarget:
    """Put a guard around *own*. Secrets in *settings*, those of its connection, are masked."""
    return cast("ConnectorTarget", _GuardedTarget(own, settings))


def author_target_without_guard(target: ConnectorTarget) -> ConnectorTarget:
    """Return the author's target."""
    return target._own if isinstance(target, _GuardedTarget) else target  # noqa: SLF001  of this module


def defect_of_target_class(own: ConnectorTarget) -> str | None:
    """Return what is wrong with the class of *own*: a misspelt name, a wrong type, or a missing method; or None."""
    wrong = misspelt_attribute_class_and_message(
        own, lambda name, value: _is_of_type(value, _declared_type_of_target_member(name))
    )
    if wrong is not None:
        return f"{wrong[1]}; see class {class_name_with_place(wrong[0])}"
    facts = (
        (name, _type_problem(getattr(own, name), _declared_type_of_target_member(name)))
        for name in ("retry", "in_flight", "kept_s", "settle_s")
    )
    if problem := next((f"{name} is {problem}" for name, problem in facts if problem), None) or lacking_method_problem(
        own
    ):
        return f"{problem}; see class {class_name_with_place(type(own))}"
    return None


class _GuardedTarget:
    """Passes each access to an attribute to the author's target. New methods of `Target` are guarded, too."""

    def __init__(self, own: ConnectorTarget, settings: object) -> None:
        self._own, self._settings = own, settings
        self._defects = dict[str, AuthorCodeError]()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        with self._convert_author_errors(name):
            value = getattr(self._own, name)
        if not callable(value):
            return self._result_or_raise_if_wrong(name, value)
        return lambda *arguments, **named: self._call_guarded(name, value, arguments, named)

    def send(self, *arguments: Any, **named: Any) -> Any:
        """Send as the target does. If it does not define that, its headers are guarded separately."""
        is_default = type(self._own).send is Target.send
        send = cast("Any", Target.send).__get__(self) if is_default else self._own.send
        return self._call_guarded("send", send, arguments, named)

    def reach(self) -> str:
        is_default = type(self._own).reach is ApiTarget.reach
        reach = cast("Any", ApiTarget.reach).__get__(self) if is_default else self._own.reach
        return cast("str", self._call_guarded("reach", reach, (), {}))

    def take_unreported_errors(self) -> list[AuthorCodeError]:
        """Return the first error of each method whose result was replaced, once."""
        defects, self._defects = self._defects, {}
        return list(defects.values())

    def _call_guarded(self, name: str, method: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        try:
            with self._convert_author_errors(name):
                value = method(*_copied_json(arguments), **_copied_json(named))
                value = list(value) if name == "also_changes" else _copied_json(value)
            return self._result_or_raise_if_wrong(name, value, arguments)
        except AuthorCodeError as error:
            cause = error.__cause__
            short = storable_copy_of_error(cause) if name in BEFORE_SENDING and isinstance(cause, RecordError) else None
            if short is not None and short.code in REASONS:
                raise short from None
            if (instead := _INSTEAD.get(name)) is None:
                raise
            self._defects.setdefault(name, error)
            return instead(error)

    def _convert_author_errors(self, name: str) -> Any:
        return convert_author_errors(name, self._own.__dict__.get("name"), code=self._own, settings=self._settings)

    def _result_or_raise_if_wrong(self, name: str, value: Any, arguments: Sequence[Any] = ()) -> Any:
        if name == "batch_outcomes" and isinstance(value, list):
            return [
                self._result_or_raise_if_wrong("outcome", one, (each,))
                for one, each in zip_longest(value, arguments[2])
            ]
        problem = _type_problem(value, _declared_type_of_target_member(name)) or _problem_of_result(value, arguments)
        if problem is not None:
            what = f"returned {problem}{text_with_line_of_code(self._own, name)}"
            raise AuthorCodeError(name, what, where=self._own.__dict__.get("name"))
        return replace(value, message=printable(value.message)) if isinstance(value, Outcome) else value


def _copied_json(value: Any) -> Any:
    """Copy JSON that an author may change: a payload is stored after one or more requests were made of it."""
    if isinstance(value, Update):
        return Update(_copied_json(value.before), _copied_json(value.changes), _copied_json(value.after))
    if isinstance(value, Outcome):
        return value if value.held is None else replace(value, held=_copied_json(value.held))
    if isinstance(value, dict):
        return {name: _copied_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copied_json(inner) for inner in value]
    return tuple([_copied_json(inner) for inner in value]) if type(value) is tuple else value


def _problem_of_result(value: Any, arguments: Sequence[Any]) -> str | None:
    if isinstance(value, Request) and value.path and (value.path[0] != "/" or not value.path.isprintable()):
        return "Request.path that does not begin with a slash, or has a control character"
    if not isinstance(value, Outcome) or value.kind not in {"delivered", "found"}:
        return None
    is_known = any(isinstance(each, ExpectedRecord) and each.target_id is not None for each in arguments)
    if value.target_id is None and (value.kind == "found" or not is_known):
        return f"Outcome({value.kind!r}) without target_id"
    return "Outcome('found') without held" if value.kind == "found" and value.held is None else None


@cache
def _declared_type_of_target_member(name: str) -> Any:
    for owner in (Target, ApiTarget):
        member = getattr(owner, name, None)
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, types.FunctionType):
            return get_type_hints(function).get("return", Any)
        if name in (hints := _type_hints_of_class(owner)):
            return hints[name]
    return Any


def _type_problem(value: Any, hint: Any, member: str = "") -> str | None:
    if hint is not Any and not _is_of_type(value, hint):
        return f"{_member_prefix(member)}{type(value).__name__} instead of {_type_in_words(hint)}"
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        parts = ((each.name, getattr(value, each.name)) for each in fields(value))
        found = (
            _type_problem(part, _type_hints_of_class(kind)[name], f"{kind.__name__}.{name}") for name, part in parts
        )
        return next((problem for problem in found if problem), None)
    if isinstance(value, str) and not is_storable(value) and not member.endswith(".message"):
        return f"{_member_prefix(member)}text with NUL or half a character"
    return None


def _member_prefix(member: str) -> str:
    return f"{member} as " if member else ""


@cache
def _type_hints_of_class(kind: type) -> Mapping[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # of a name that is imported for type checkers only
        return dict.fromkeys(inspect.get_annotations(kind), Any)


_NUMBERS: Mapping[Any, tuple[type, ...]] = {int: (int,), float: (int, float)}


def _is_of_type(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return any(_is_of_type(value, each) for each in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_is_of_type, value, parts))
    if origin is Iterable:
        return isinstance(value, list) and all(_is_of_type(each, parts[0]) for each in value)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) and not _is_protocol(kind) else value is not None


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _type_in_words(hint: Any) -> str:
    if get_origin(hint) in {Union, types.UnionType}:
        return " or ".join(map(_type_in_words, get_args(hint)))
    if get_origin(hint) is Literal:
        return "one of its values"
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))
