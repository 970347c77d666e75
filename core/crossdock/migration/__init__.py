"""The one-off move of a legacy system: rehearse, load, reconcile, undo, sign off. Runs and plans do the work."""
