"""The comparison of the sources, the state and the platform, and the repair of what differs.

Input: the streams of a project. Output: the differences by class, totals of each resource, and a plan file that repairs
them, which a run delivers. It may import what `crossdock.runs` may import; `crossdock.runs.undo` is above it.
"""
