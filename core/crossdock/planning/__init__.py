"""From records to operations: drafts, references, creates, updates and deletes.

Input: keyed records of the delta. Output: operations in the order of their references, waiting records, and removals
within their limits. The package may import the delta, the config, delivery's rules and the state.
"""
