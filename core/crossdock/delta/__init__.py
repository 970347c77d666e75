"""The changes since the last run, computed in columns: records that are new, changed, gone or repeated."""
