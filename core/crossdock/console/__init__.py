"""The web console, and the pages that commands write: what a state and a config say, as HTML.

Input: configs with their states, and forms that people send. Output: pages, and the commands that people start. It may
import `crossdock.services`, `crossdock.migration`, `crossdock.runs` and what is below them.
"""
