"""Read-only queries across several tables, for reports, traces and statistics.

Input: a transaction that may be read-only. Output: runs, histories of records, and sizes. It may import `state.db`,
`state.tables` and what `crossdock.state` may import.
"""
