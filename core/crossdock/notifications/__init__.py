"""Messages about runs to people (mail) and programs (webhooks)."""
