"""``crossdock new``: a folder with a connector that works, to change.

Input: options, or an OpenAPI document. Output: the files of a project with its tests, from ``project_templates``. It
imports no connector, and from the packages below only `crossdock.platform`, the resources, the errors and
`crossdock.values`.
"""
