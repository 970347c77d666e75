"""One run of a project: read, plan, deliver, and check that the tally balances.

Input: a project with its state. Output: a report, or a plan that calls no target. It may import `crossdock.delta`,
`crossdock.config` and what is below them; programs, services, migrations and commands start runs.
"""
