"""What a stream declares about its records, and how a record becomes a draft: pure functions without I/O or clock.

Comes in: records, and declarations of a connector or a config. Goes out: drafts of resources, or record errors. May
import formats, resources and values.
"""
