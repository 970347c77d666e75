"""Files beside the database. Losing them costs time or a warning, never data.

Input: hashes and marks of a run. Output: the index of keys, owners of folders, and fences against restored copies. It
may import `state.db`, `state.tables` and what `crossdock.state` may import.
"""
