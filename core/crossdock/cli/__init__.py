"""The command line: parse, call, show, exit code.

Input: arguments. Output: text or JSON, and an exit code. The package may import every other one. Commands import what
they need when they run, so that help is fast.
"""
