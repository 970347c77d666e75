"""Findings of a config file in plain words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from crossdock.values.config_file import message_of_pydantic_error


class Part(BaseModel):
    number: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=100)] = 1.0
    flag: bool = False
    mark: Literal[".", ","] = "."
    text: Annotated[str, Field(min_length=2, max_length=4)] = "ab"
    code: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"number": 0}, "must be at least 1"),
        ({"number": 10}, "must be at most 9"),
        ({"number": "x"}, "must be a whole number"),
        ({"number": 1.5}, "must be a whole number"),
        ({"share": 0}, "must be more than 0.0"),
        ({"share": 100}, "must be less than 100.0"),
        ({"share": "x"}, "must be a number"),
        ({"flag": "nope"}, "must be true or false"),
        ({"mark": ";"}, "must be '.' or ','"),
        ({"code": "eur"}, "must match the pattern ^[A-Z]{3}$"),
        ({"code": 7}, "must be text"),
        ({"text": "a"}, "must have at least 2 characters"),
        ({"text": "abcde"}, "must have at most 4 characters"),
    ],
)
def test_a_finding_is_one_plain_sentence(given: dict[str, Any], message: str) -> None:
    """Without the value, which may be a secret."""
    with pytest.raises(ValidationError) as refused:
        Part.model_validate(given)
    (item,) = refused.value.errors()
    assert message_of_pydantic_error(item) == message
