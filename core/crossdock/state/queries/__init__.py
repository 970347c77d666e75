"""Read-only queries across several tables, for reports, traces and statistics."""
