"""The declarations of a stream about its records, and the mapping of a record to a draft. All functions are pure.

Input: a record, and what its stream declares. Output: a draft, or an error with its place. It may import
`crossdock.reading`, for the declarations of files and APIs, and the packages below it; never the state.
"""
