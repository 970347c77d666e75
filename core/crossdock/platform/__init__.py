"""The platform as specified, and the assumptions where the specification is silent.

Input: the platform's part of a config. Output: credentials, scopes, webhooks, and a typed client. The package may
import resource types of mapping, HTTP, pacing and values.
"""
