"""The command line: parse, call, show, exit code.

Comes in: arguments. Goes out: text or JSON, and an exit code. May import every room; commands import what they need
when they run, so that help is quick.
"""
