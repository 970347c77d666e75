"""Spends a token bucket well, and learns the rate limit that an API does not state.

Comes in: answers and their headers. Goes out: how long to wait; nothing here sleeps. May import values only.
"""
