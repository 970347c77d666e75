"""The undo of a run or of a migration: its plan deletes what was created and restores what was changed.

Input: what the state knows to be delivered, and the records that the platform has now. Output: a plan file, and the
operations of an approved one, which a run delivers. It may import the reconciliation, for the comparison with the
platform, and what `crossdock.runs` may import.
"""
