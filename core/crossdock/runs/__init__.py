"""One run of a project: read, plan, deliver, and check that the tally balances.

Input: a project and a selection of its streams. Output: a report, rows of the run in the state, and messages. The
package may import everything but commands, services and migrations.
"""
