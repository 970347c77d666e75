"""What changed since the last run: raw rows to keyed records, compared with the state in columns."""
