"""Files beside the database. Losing them costs time or a warning, never data."""
