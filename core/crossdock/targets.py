"""Targets, to which operations are sent. The platform is one; a connector may declare another for its connections."""

from crossdock.pacing.rate_limit_headers import RateHeaders
from crossdock.reading.transport.http_results import Answer
from crossdock.writing.targets.api_target import ApiTarget
from crossdock.writing.targets.outcomes import ExpectedRecord, Outcome, RecordShape, body_of
from crossdock.writing.targets.target import (
    BatchProfile,
    Client,
    EndpointProfile,
    Request,
    Rule,
    Target,
    TargetResource,
    Update,
)

__all__ = [
    "Answer",
    "ApiTarget",
    "BatchProfile",
    "Client",
    "EndpointProfile",
    "ExpectedRecord",
    "Outcome",
    "RateHeaders",
    "RecordShape",
    "Request",
    "Rule",
    "Target",
    "TargetResource",
    "Update",
    "body_of",
]
