"""The platform as specified, and what is assumed where the specification is silent.

Comes in: the platform's part of a config. Goes out: credentials, scopes, webhooks, and a typed client. May
import resource types of mapping, HTTP, pacing and values.
"""
