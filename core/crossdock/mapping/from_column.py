"""The form of a map that reads a column or a member of a JSON row: as text, converted, or looked up in a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Strict,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    WithJsonSchema,
    model_validator,
)

from crossdock.errors import RecordError
from crossdock.mapping import convert
from crossdock.mapping.convert import MAX_DECIMALS, DecimalMark, Rounding, Row, Sign, Thousands
from crossdock.values import exact_json
from crossdock.values.config_base_types import NOT_NULL, ConfigModel, GivenText, make_pydantic_error_at_key
from crossdock.values.field_types import MAX_DIGITS_BEFORE_POINT, minor_unit_digits_or_none
from crossdock.values.json_paths import (
    MISSING,
    is_index,
    is_null_false_or_empty,
    json_value_as_column_text,
    names_in_path,
    path_of_names,
    type_description,
    value_at_path_or_missing,
    value_at_path_refusing_wrong_containers,
)
from crossdock.values.raw_rows_and_records import JSON
from crossdock.values.time_formats_and_zones import (
    UNIX,
    Ambiguous,
    TimeFormat,
    check_zone_name,
    raise_if_invalid_time_format,
)


class JsonCells(dict[str, str | None]):
    """Cells by their paths. One that is empty because no object or list is where its path says raises RecordError.

    Args:
        cells: The columns of the row.
        count: `Record.count` of its record.
        document: Its object; by default that of the column ``_json``.
        others: First names of columns that are no paths, such as those of look-ups.
    """

    def __init__(
        self,
        cells: Mapping[str, str | None],
        count: Callable[[str], None],
        document: Any = MISSING,
        others: Collection[str] = (),
    ) -> None:
        super().__init__(cells)
        self._count, self._others = count, others
        if document is not MISSING:
            self.document = document

    @cached_property
    def document(self) -> Any:
        return exact_json.loads(self.get(JSON) or "null")

    def __getitem__(self, column: str) -> str | None:
        cell = super().__getitem__(column)
        if cell is None and column.partition(".")[0] not in self._others:
            value_at_path_refusing_wrong_containers(self.document, column)
        return cell

    def value_text(self, column: str) -> str | None:
        """Return the cell; None for an empty object or list. RecordError for another one, whose text is no value."""
        cell = self[column]
        if (
            not cell
            or cell[0] not in "{["
            or not isinstance(found := value_at_path_or_missing(self.document, column), dict | list)
        ):
            return cell
        if found:
            raise RecordError("bad_value", f"{type_description(found)}, and should be a value", pointer=column)
        return None

    def count_left_out_object(self, around: str | None) -> None:
        """Count an object that is left out although *around*, which all its members are in, has some content."""
        if around is not None and has_content(value_at_path_or_missing(self.document, around)):
            self._count(f"object of {around} left out, which has no member that map reads")

    def count_unread_elements(self, lists: Mapping[str, Collection[int]]) -> None:
        """Count the lists that have more elements than those that a map reads by their numbers."""
        for path, numbers in lists.items():
            found = value_at_path_or_missing(self.document, path)
            if isinstance(found, list) and any(
                number not in numbers and has_content(each) for number, each in enumerate(found)
            ):
                self._count(f"elements of {path} left out, which map does not read")


def cell_text_refusing_containers(row: Row, column: str) -> str | None:
    """Return the cell. Raises RecordError if the row was read as JSON, and an object or a list is there."""
    return row.value_text(column) if isinstance(row, JsonCells) else row[column]


def common_parent_path(columns: Iterable[str]) -> str | None:
    """Return the path of the object that all *columns* are in, such as ``ship`` of ``ship.city``; None if it is the
    record itself.
    """
    parents = [names_in_path(column)[:-1] for column in columns]
    shared = list[str]()
    for names in zip(*parents, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return path_of_names(shared) if shared else None


def element_indexes_by_list_path(columns: Collection[str]) -> dict[str, set[int]]:
    """Return the paths of lists with the numbers of the elements that *columns* read, unless one is the whole list."""
    found: dict[str, set[int]] = {}
    for path, number in _list_paths_with_indexes(columns):
        found.setdefault(path, set()).add(number)
    whole = {path_of_names(names_in_path(column)) for column in columns}
    return {path: numbers for path, numbers in found.items() if path not in whole}


def _list_paths_with_indexes(columns: Iterable[str]) -> Iterator[tuple[str, int]]:
    for column in columns:
        names = names_in_path(column)
        for place, name in enumerate(names):
            if place and is_index(name):
                yield path_of_names(names[:place]), int(name)


def has_content(value: Any) -> bool:
    """Return whether *value* is not null, false or empty, nor made of such values alone."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return not is_null_false_or_empty(value) if inner is None else any(has_content(each) for each in inner)


Value = Callable[[Row], Any]  # None leaves the member out


def _check_date_format(layout: str) -> str:
    raise_if_invalid_time_format(layout)
    return layout


DateFormat = Annotated[str, Field(max_length=100), AfterValidator(_check_date_format)]


def _one_or_several_tag(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


Texts = Annotated[
    Annotated[str, Tag("one")] | Annotated[tuple[str, ...], Tag("several")], Discriminator(_one_or_several_tag)
]
Number = StrictInt | Annotated[Decimal, Strict(), WithJsonSchema({"type": "number"})]
Factor = Annotated[Number, Field(gt=0, lt=10**MAX_DIGITS_BEFORE_POINT)]
Scalar = StrictStr | StrictBool | Number


class FromColumn(ConfigModel):
    """A column, as text, converted, or looked up in a table. An empty cell leaves the member out."""

    from_: Annotated[str, Field(alias="from")]
    """The column. If its cell is empty, the member is left out."""
    as_: Annotated[Literal["text", "decimal", "integer", "date", "instant", "boolean"], Field(alias="as")] = "text"
    """What the text is converted to."""
    format: DateFormat | None = None
    """The format of a date or instant: as for strptime, ``unix``, ``unix_ms``, ``microsoft_json``, ``cyymmdd`` or
    ``cyyddd``."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """IANA time zone of an instant without offset."""
    ambiguous: Ambiguous | None = None
    """What is read of a local time that occurs twice, or never, when clocks change: the ``earlier`` or the ``later``
    instant that it may be; rejected by default."""
    hour_24: bool | None = None
    """Whether the time 24:00 is the end of a day; refused by default."""
    decimal_mark: DecimalMark = "."
    """The decimal mark of a number."""
    thousands: Thousands | None = None
    """The mark between groups of three digits; none by default."""
    sign: Sign | None = None
    """Where a number's sign is: ``leading`` by default, ``trailing``, in ``parentheses`` around negative numbers, or
    part of the last digit (``overpunch``)."""
    round: Rounding | None = None
    """How digits after the fourth of a decimal are rounded; they are refused by default."""
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    """How many of the last digits come after the decimal mark, which is not written."""
    minor_units: Annotated[StrictStr, Field(min_length=1)] | None = None
    """The currency of which the number counts minor units, or the column with its code: 129900 is 1299.00 with
    ``EUR``."""
    factor: StrictStr | Factor | None = None
    """What a number is multiplied by, exactly: a number, or the column that holds it, such as the size of a case."""
    true_text: str = "true"
    """The text of a boolean that means true."""
    false_text: str = "false"
    """The text of a boolean that means false."""
    empty: Annotated[Texts | None, NOT_NULL] = None
    """One text or several that count as empty too, such as 00000000."""
    table: Annotated[Mapping[str, Scalar], Field(min_length=1)] | None = None
    """The value of each text of the column. Another text rejects the record, unless ``otherwise`` is set."""
    otherwise: Scalar | None = None
    """The value of a text that the table does not list; it is refused by default."""
    default: Scalar | None = None
    """The value of an empty cell."""
    join: GivenText = None
    """The cell is a list of texts in JSON, and this is the text between them, such as a comma; empty ones are left
    out."""
    start: Annotated[StrictInt | None, Field(ge=0)] = None
    """With ``join``: how many texts at the beginning of the list are left to other members; none by default."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        numeric = self.as_ in {"decimal", "integer"}
        number = None if numeric else "needs as: decimal or as: integer"
        instant = None if self.as_ == "instant" else "needs as: instant"
        wrong = {
            "format": instant if self.format in UNIX else None,
            "ambiguous": instant if self.timezone is not None else "needs timezone",
            "hour_24": instant,
            "thousands": number or self._thousands_option_problem(),
            "sign": number,
            "decimals": number or ("cannot be used with thousands" if self.thousands else None),
            "minor_units": self._minor_units_option_problem(),
            "factor": number,
            "round": None if self.as_ == "decimal" else "needs as: decimal",
            "table": None if self.as_ == "text" else "looks up the text of the column, so `as` cannot be used",
            "join": None if self.as_ == "text" and self.table is None else "needs as: text, without a table",
            "start": "needs join" if self.join is None else None,
            "otherwise": "needs a table; use default for empty cells" if self.table is None else None,
        }
        for name, problem in wrong.items():
            if problem and getattr(self, name) is not None:
                raise make_pydantic_error_at_key((name,), problem)
        return self

    def _minor_units_option_problem(self) -> str | None:
        if self.as_ != "decimal":
            return "needs as: decimal"
        other = next((name for name in ("decimals", "thousands") if getattr(self, name) is not None), None)
        return f"cannot be used with {other}" if other else None

    def _thousands_option_problem(self) -> str | None:
        if self.thousands != self.decimal_mark:
            return None
        return f"is the decimal mark too; set decimal_mark, which is {self.decimal_mark!r}"

    def compile(self) -> Value:
        column, read, default = self.from_, self._compile_conversion(), self.default
        empty = frozenset([self.empty] if isinstance(self.empty, str) else self.empty or ())
        may_be_blank, is_list = self.as_ in {"decimal", "integer"}, self.join is not None

        def value(row: Row) -> Any:
            cell = row[column] if is_list else cell_text_refusing_containers(row, column)
            if not cell or cell in empty or (may_be_blank and cell.isspace()):
                return default
            made = read(row) if read else cell
            return default if made is None else made

        return value

    def _compile_conversion(self) -> Value | None:
        column = self.from_
        match self.as_:
            case "text":
                looked_up = self._look_up_in_table if self.table is not None else None
                return self._join_list if self.join is not None else looked_up
            case "decimal" | "integer":
                return self._compile_number()
            case "date":
                return lambda row: convert.day(row, column, layout=self.format or "%Y-%m-%d")
            case "instant":
                times = TimeFormat(self.format, self.timezone, self.ambiguous, self.hour_24)
                return lambda row: times.parse_instant(convert.text(row, column), column)
            case "boolean":
                return lambda row: convert.boolean(row, column, true=self.true_text, false=self.false_text)

    def _compile_number(self) -> Value:
        column, reader = self.from_, self._number_reader
        if [*self.columns()] != [column]:
            return lambda row: convert.number(row, column, reader(row))
        read = reader({})  # the same for all rows
        return lambda row: convert.number(row, column, read)

    def _number_reader(self, row: Row) -> Callable[[str], Any]:
        decimals, factor, sign = self._implied_decimals(row), self._factor(row), self.sign or "leading"
        form = convert.NumberFormat(self.decimal_mark, self.thousands, sign, self.round, decimals, factor)
        return form.parse_decimal if self.as_ == "decimal" else form.parse_integer

    def _factor(self, row: Row) -> Decimal | int:
        if not isinstance(self.factor, str):
            return 1 if self.factor is None else self.factor
        factor = convert.decimal(row, self.factor, decimal_mark=self.decimal_mark)
        if factor <= 0:
            raise RecordError("bad_value", "is a factor, and not a number above 0", pointer=self.factor)
        return factor

    def _implied_decimals(self, row: Row) -> int | None:
        if self.minor_units is None:
            return self.decimals
        if (known := minor_unit_digits_or_none(self.minor_units)) is not None:
            return known
        found = minor_unit_digits_or_none((row[self.minor_units] or "").strip().upper())
        if found is None:
            raise RecordError("bad_value", "is not a currency with minor units (ISO 4217)", pointer=self.minor_units)
        return found

    def columns(self) -> Iterator[str]:
        yield self.from_
        if self.minor_units is not None and minor_unit_digits_or_none(self.minor_units) is None:
            yield self.minor_units
        if isinstance(self.factor, str):
            yield self.factor

    def _join_list(self, row: Row) -> str | None:
        try:
            found = exact_json.loads(convert.text(row, self.from_))
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise RecordError("bad_value", "is not a list in JSON, and join is for lists", pointer=self.from_)
        wanted = [each for each in found[self.start or 0 :] if not is_null_false_or_empty(each)]
        if not all(isinstance(each, str | int | Decimal) for each in wanted):
            raise RecordError("bad_value", "has an element that is not a text or a number", pointer=self.from_)
        return (self.join or "").join(json_value_as_column_text(each) or "" for each in wanted) or None

    def _look_up_in_table(self, row: Row) -> Scalar:
        found = (self.table or {}).get(row[self.from_] or "", self.otherwise)
        if found is None:
            raise RecordError("bad_value", "is not in the table of the map", pointer=self.from_)
        return found
