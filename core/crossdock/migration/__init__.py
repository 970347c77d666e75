"""The one-off move of a legacy system: rehearsal, load in waves, reconciliation, undo, sign-off.

Input: a project with a migration. Output: a plan of waves, a comparison with the platform, a signed report. Runs and
plans do the work; no other package except the commands knows of migrations.
"""
