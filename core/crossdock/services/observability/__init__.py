"""Health, metrics and traces for monitoring systems."""
