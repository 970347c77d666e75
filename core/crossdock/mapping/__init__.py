"""The declarations of a stream about its records, and the mapping of a record to a draft. All functions are pure."""
