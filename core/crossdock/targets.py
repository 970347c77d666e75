"""Targets, to which operations are sent. The platform is one; a connector may declare another for its connections."""

from crossdock.pacing.answer_headers import RateHeaders
from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, Answer, TooLargeError
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.writing.files.content_kinds import FileContentConfig, FileRecord
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome, RecordShape, body_of
from crossdock.writing.targets.api_target import AnswerErrors, ApiTarget
from crossdock.writing.targets.file_hand_over import HandOver, IfMissing
from crossdock.writing.targets.file_target import ACKNOWLEDGEMENTS, FileForm, FileResource, FileTarget
from crossdock.writing.targets.target import (
    BatchProfile,
    Client,
    ConnectorTarget,
    EndpointProfile,
    Request,
    Rule,
    Target,
    TargetResource,
    Update,
)

__all__ = [
    "ACKNOWLEDGEMENTS",
    "AmbiguousError",
    "Answer",
    "AnswerErrors",
    "ApiTarget",
    "BatchProfile",
    "Client",
    "ConnectorTarget",
    "EndpointProfile",
    "ExpectedRecord",
    "FileContentConfig",
    "FileForm",
    "FileRecord",
    "FileResource",
    "FileTarget",
    "HandOver",
    "IfMissing",
    "Outcome",
    "RateHeaders",
    "RecordShape",
    "Request",
    "Rule",
    "Target",
    "TargetResource",
    "TooLargeError",
    "Update",
    "body_of",
    "key_parts_of",
    "key_text",
]
