"""Acknowledgements of what was handed over to a target."""

from __future__ import annotations

from typing import Self

from pydantic import StrictBool, StrictStr, model_validator

from crossdock.resources import ResourceModel
from crossdock.writing.targets.target import EndpointProfile, TargetResource

ACKNOWLEDGEMENTS = "acknowledgements"
"""The name of the resource of a target to which streams with acknowledgements write."""


class Acknowledgement(ResourceModel):
    """What a partner says about files that were handed over to it.

    Attributes:
        file: The name of the file.
        number: The number of the file, such as the control number of its interchange; zeros before it do not count.
        control: The control number of one transaction set or message in that file.
        record: The external id of one record. Without *control* and *record* it is about the whole file.
        accepted: Whether the partner has accepted it.
        reason: Why it was refused.
    """

    file: StrictStr | None = None
    number: StrictStr | None = None
    control: StrictStr | None = None
    record: StrictStr | None = None
    accepted: StrictBool
    reason: StrictStr | None = None

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not (self.file or self.number or self.record):
            raise ValueError("needs the file, its number, or the record that is acknowledged")
        return self


def acknowledgement_resource() -> TargetResource:
    """Return the resource of a target to which streams bring acknowledgements."""
    endpoint = EndpointProfile(reads=False)
    return TargetResource(
        ACKNOWLEDGEMENTS, Acknowledgement, write_once=True, deletes=False, endpoint=endpoint, acknowledges=True
    )
