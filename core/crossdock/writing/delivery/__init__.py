"""Delivers operations: stores intents, sends requests, and settles their outcomes."""
