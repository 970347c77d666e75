"""Bytes to rows: HTTP, SFTP and folders, file formats, and sources with evidence that they were read to the end.

Comes in: settings of a connection. Goes out: batches of rows with their place, and what proves that a list or file is
complete. May import the state of what was read, pacing and values.
"""
