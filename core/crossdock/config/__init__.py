"""From config files to projects, with checks whose errors have the file, line and nearest name.

Input: YAML files, and the connectors that are installed. Output: a `Project` whose streams are bound to connections and
targets. It may import `crossdock.connector` and what is below it; it reads no source, and sends nothing.
"""
