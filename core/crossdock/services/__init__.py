"""Long-running services: the scheduler, a fleet of tenants, the inbox of webhooks, notifications, health and metrics.

Input: projects with jobs, webhooks, and signals. Output: runs, notifications, and metrics. It may import
`crossdock.runs` and what is below it.
"""
