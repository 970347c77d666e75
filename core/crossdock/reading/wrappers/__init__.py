"""Wrappers of files, such as gzip, zip and PGP: wrapped files come in, what is in them goes out, and the other way.

Each wrapper is one module and one entry in `wrapping_and_unwrapping`. Only `values`, `errors` and `printable` are
imported.
"""
