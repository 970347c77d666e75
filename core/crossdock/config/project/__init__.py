"""A config file to a project: the platform, the state, the connections and their streams.

Input: one config file. Output: a `Project`, its effective config, and the JSON Schema of config files. It may import
the rest of `crossdock.config` and what that may import.
"""
