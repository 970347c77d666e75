"""Doing what schedules ask for: each business night once, whoever wakes first and whatever is killed."""
