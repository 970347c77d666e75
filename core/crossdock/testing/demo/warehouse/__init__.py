"""The sample warehouse of ``crossdock demo --warehouse``, which exchanges files.

Input: files with orders in a folder. Output: files with acknowledgements, shipments and stock. It may import
`crossdock.testing.demo` and what that may import.
"""
