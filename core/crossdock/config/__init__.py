"""From config files to projects, with checks whose errors have the file, line and nearest name.

Input: YAML, and the installed connectors. Output: a project with bound streams, targets and jobs. The package may
import what it declares: connectors, targets, mapping, sources and the state.
"""
