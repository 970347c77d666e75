"""The changes since the last run, computed in columns: records that are new, changed, gone or repeated.

Input: frames of rows, and what the state knows. Output: records with their hashes, of which only new and changed ones
are read as objects. It may import `crossdock.connector` and what is below it; it maps nothing and sends nothing.
"""
