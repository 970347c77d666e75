"""Notifications about scheduled runs: mail for people, webhooks for programs."""
