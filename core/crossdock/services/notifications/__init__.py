"""Notifications about scheduled runs: mail for people, webhooks for programs.

Input: events of scheduled runs, and the recipients in a config. Output: mails and HTTP requests, each tried until it is
accepted or given up. It may import what `crossdock.services` may import, and imports no other service.
"""
