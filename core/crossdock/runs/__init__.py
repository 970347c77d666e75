"""One run of a project: read, plan, deliver, and check that the tally balances.

Comes in: a project, and what to run of it. Goes out: a report, rows of the run in the state, and messages. May import
everything but commands, services and migrations.
"""
