"""What changed since the last run, in columns.

Comes in: raw rows of a stream. Goes out: keyed records that are new, changed or gone, and those that repeat. May import
`crossdock.connector`, mapping and the state.
"""
