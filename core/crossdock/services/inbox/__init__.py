"""Receives webhooks, keeps them in the state, and delivers the records that they are about."""
