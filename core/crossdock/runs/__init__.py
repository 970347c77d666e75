"""One run of a project: read, plan, deliver, and check that the tally balances.

Input: a project with its state. Output: a report, or a plan that calls no target. It may import `crossdock.planning`
and what is below it; programs, services, migrations and commands start runs.
"""
