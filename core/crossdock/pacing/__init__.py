"""Spending a token bucket well: it answers how long to wait, and never sleeps."""
