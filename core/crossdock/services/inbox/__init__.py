"""Receives webhooks, stores them in the state, and delivers the records that they are about."""
