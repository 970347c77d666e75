"""The tables of the state, one module for each concern.

Input: a transaction. Output: rows as values with types. It may import `state.db`, the key index, and what
`crossdock.state` may import.
"""
