"""The undo of a run or of a migration: what was created is deleted, and what was changed is restored.

Input: the history in the state, and the records that the platform has now. Output: a plan file, and a run that carries
out an approved one. It may import `crossdock.runs.reconciliation`, and what `crossdock.runs` may import.
"""
