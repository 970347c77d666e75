"""What a run read of records, compared with a run that nothing disturbed."""

from __future__ import annotations

from crossdock.runs.stream_trial import Trial, TriedRecord

PART = (
    "a part of a record lacks, and nothing says so; catch no error of ctx.api, or let to_resource raise a RecordError "
    "or call record.count for a record whose part could not be read"
)


def describe_silent_reading_loss(trial: Trial, whole: Trial) -> str | None:
    """Return what *trial* lacks of the records of *whole* although neither an error nor a record says so, or None."""
    if trial.error is not None:
        return None
    found, wanted = len(trial.records), len(whole.records)
    if found != wanted:
        return f"{found} of {wanted} records, and no error; catch no error of ctx.api"
    pairs = zip(trial.records, whole.records, strict=True)
    return PART if any(_differs(*pair) and not _record_reports_new_problem(*pair) for pair in pairs) else None


def reports_new_problem(trial: Trial, whole: Trial) -> bool:
    """Return whether records of *trial* tell of a problem or of a missing part that those of *whole* do not have."""
    return any(_record_reports_new_problem(*pair) for pair in zip(trial.records, whole.records, strict=False))


def _differs(found: TriedRecord, wanted: TriedRecord) -> bool:
    return (found.record.rows, found.members) != (wanted.record.rows, wanted.members)


def _record_reports_new_problem(found: TriedRecord, wanted: TriedRecord) -> bool:
    is_refused = found.problem is not None and wanted.problem is None
    return is_refused or found.record.parts != wanted.record.parts
