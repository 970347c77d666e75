"""Records to operations: drafts, references, creates, updates and deletes.

Comes in: keyed records of the delta. Goes out: operations in the order of their references, records that wait, and
removals within their limits. May import the delta, the config, delivery's rules and the state.
"""
