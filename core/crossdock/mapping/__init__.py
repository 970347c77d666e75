"""The declarations of a stream about its records, and the mapping of a record to a draft. All functions are pure.

Input: records, and declarations of a connector or a config. Output: drafts of resources, or record errors. The package
may import formats, resources and values.
"""
