"""Receives webhooks, stores them in the state, and delivers the records that they are about.

Input: signed requests of vendors. Output: named records, fetched and delivered by a run. It may import what
`crossdock.services` may import, and imports no other service.
"""
