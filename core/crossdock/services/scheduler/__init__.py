"""The service that starts due runs.

Input: a project with jobs. Output: scheduled runs, each once for each due time, notices about them, and upkeep of the
state. It may import the inbox, the notifications and the observability, and what `crossdock.services` may import.
"""
