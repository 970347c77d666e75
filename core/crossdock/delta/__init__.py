"""The changes since the last run, computed in columns.

Input: raw rows of a stream. Output: keyed records that are new, changed, gone or repeated. The package may import
`crossdock.connector`, mapping and the state.
"""
