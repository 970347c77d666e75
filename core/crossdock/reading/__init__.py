"""Bytes to rows: HTTP, SFTP and folders, file formats, and sources with evidence that they were read to the end.

Input: the settings of a connection. Output: batches of rows with their places, and the evidence that a list or file is
complete. The package may import the state of what was read, pacing and values.
"""
