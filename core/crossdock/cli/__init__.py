"""The command line. Commands import what they need when they run, so that ``--help`` is fast.

Input: arguments, options, and a config file. Output: text, tables, JSON and pages, and an exit code. A command parses
and shows; the work is done by the packages below, all of which it may import. Only ``python -m crossdock`` imports it.
"""
