"""Read-only queries across several tables: what reports, traces and statistics show."""
