"""One schedule over many tenants, whose runs an executor executes on this host or on others.

Input: a fleet file, and the projects of its tenants. Output: runs in slots that are shared fairly, and notices in
groups. It may import the scheduler, the notifications and the observability, and what `crossdock.services` may import.
"""
