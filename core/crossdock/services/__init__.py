"""Processes that stay: the scheduler, a fleet of tenants, the inbox of webhooks, notifications, health and metrics.

Comes in: projects with jobs, webhooks, and signals. Goes out: runs, notices, and metrics. May import runs and below.
"""
