"""Health, metrics and traces for monitoring systems.

Input: finished runs, and the state of a service. Output: a health page, Prometheus metrics, and OpenTelemetry traces.
It may import the notifications and what `crossdock.services` may import.
"""
