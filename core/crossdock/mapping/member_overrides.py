"""Members of a draft that a config file maps instead of the connector's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from crossdock.mapping.declarative import RecordMap
from crossdock.records import Record
from crossdock.resources import ResourceModel


class MemberOverrides:
    """Replaces some members of a draft.

    Args:
        forms: The form of each of these members, by its name on the wire.

    Attributes:
        columns: The columns that are read.
    """

    def __init__(self, forms: Mapping[str, Any]) -> None:
        self._names, self._map = frozenset(forms), RecordMap(forms)
        self.columns = self._map.columns

    def applied_to(self, made: ResourceModel | Mapping[str, Any], record: Record) -> dict[str, Any]:
        """Replace these members in *made*. One without a value is left out.

        Raises:
            RecordError: If a cell does not convert, or rows of the record disagree outside ``each``.
        """
        given = (
            {name: getattr(made, name) for name in made.model_fields_set} if isinstance(made, ResourceModel) else made
        )
        others = {name: value for name, value in given.items() if to_camel(str(name)) not in self._names}
        return others | self._map(record)
