"""From keyed records of the delta to operations in the order of their references, waiting records, and removals.

Input: drafts or records that are gone, and the state. Output: operations, waiting records and dead letters, for a plan
or for delivery. It may import `crossdock.delta`, `crossdock.config` and what is below them; it calls no target.
"""
