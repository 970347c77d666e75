"""External ids that several members of a record hold together."""

from __future__ import annotations

import pytest

from crossdock.errors import RecordError
from crossdock.mapping.external_ids import NameMembers
from crossdock.values.json_paths import MISSING

SOURCE = NameMembers({"source": "{namespace}", "number": "{key}"}, "{namespace}:{key}")
PARCEL = NameMembers({"reference": "{namespace}/{key.0}", "sub": "{key.1}"}, "{namespace}:{key}")


@pytest.mark.parametrize(
    ("names", "key", "members"),
    [
        (SOURCE, "SO-1", {"source": "shop", "number": "SO-1"}),
        (SOURCE, "A:1|x%2Fy", {"source": "shop", "number": "A:1|x%2Fy"}),
        (PARCEL, "7001|1Z%2F9", {"reference": "shop/7001", "sub": "1Z%2F9"}),
    ],
)
def test_members_and_name_give_each_other(names: NameMembers, key: str, members: dict[str, str]) -> None:
    """Whatever the key contains; other members do not matter."""
    assert names.members_of_key("shop", key) == names.members_of_external_id(f"shop:{key}") == members
    assert names.external_id_in({**members, "note": "x"}) == f"shop:{key}"


def test_a_record_of_others_has_no_name_of_ours() -> None:
    """It may have some of the members, in another form or null."""
    assert SOURCE.external_id_in({"number": "SO-1"}) is None
    assert SOURCE.external_id_in({"source": None, "number": "SO-1"}) is None
    assert PARCEL.external_id_in({"reference": "7001", "sub": "1Z"}) is None
    assert SOURCE.external_id_in({"note": "x"}) is MISSING


def test_a_key_needs_the_parts_that_members_have() -> None:
    """One of another number of parts is a dead letter."""
    with pytest.raises(RecordError, match="1 parts instead of 2"):
        PARCEL.members_of_key("shop", "7001")
    with pytest.raises(RecordError, match="2 parts instead of 1"):
        NameMembers({"number": "{key.0}"}, "{key}").members_of_key("shop", "7001|2")


@pytest.mark.parametrize(
    ("forms", "whole"),
    [
        ({"source": "{namespace}"}, "{namespace}:{key}"),
        ({"number": "{key}"}, "{namespace}:{key}"),
        ({"source": "{namespace}", "number": "{key}"}, "{key}"),
        ({"source": "{namespace}", "number": "{key.1}"}, "{namespace}:{key}"),
    ],
)
def test_members_must_hold_all_of_the_name(forms: dict[str, str], whole: str) -> None:
    """Else two records would have the same members."""
    with pytest.raises(ValueError, match="name_parts need"):
        NameMembers(forms, whole)


@pytest.mark.parametrize(
    ("forms", "whole"),
    [
        ({"number": "{namespace}-{key}"}, "{namespace}:{key}"),
        ({"source": "{namespace}", "number": "{key.0}{key.1}"}, "{namespace}:{key}"),
        ({"source": "{namespace}", "number": "{key}"}, "{namespace}-{key}"),
        ({"source": "{namespace}", "number": "{key}{key.10}"}, "{namespace}:{key}"),
    ],
)
def test_two_names_have_different_members(forms: dict[str, str], whole: str) -> None:
    """The key ``b-c`` of ``a`` and the key ``c`` of ``a-b`` would be one record."""
    with pytest.raises(ValueError, match="name_parts and name_form"):
        NameMembers(forms, whole)
