"""Sources: files with their intake checks, and paged HTTP.

Input: what a stream declares, and the context of a run. Output: batches of rows, with evidence that a file or a list is
complete. It may import the formats and the transport, and what `crossdock.reading` may import.
"""
