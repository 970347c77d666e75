"""Config files to projects: what they say, checked, with the file, line and nearest name in each error.

Comes in: YAML, and the connectors that are installed. Goes out: a project with bound streams, targets and jobs. May
import what it declares: connectors, targets, mapping, sources and the state.
"""
