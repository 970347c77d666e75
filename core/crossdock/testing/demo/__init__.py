"""The demo: a made-up warehouse, the sandbox, and two daily runs between them.

Input: an empty folder. Output: exports, a config, running servers, and a check of the effects. It may import what
`crossdock.testing` may import.
"""
