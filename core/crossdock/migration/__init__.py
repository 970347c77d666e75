"""The one-off move of a legacy system: rehearsal, load in waves, freeze and sign-off.

Input: a project with a migration. Output: a plan of waves with its forecast, loads, and a signed report. Runs, plans
and reconciliations do the work: it may import `crossdock.runs` and what is below it. Only commands import it.
"""
