"""The one-off move of a legacy system: rehearse, load in waves, reconcile, undo, sign off.

Comes in: a project with a migration. Goes out: a plan of waves, a comparison with the platform, a signed report. Runs
and plans do the work; nothing below knows of migrations.
"""
