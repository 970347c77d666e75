"""One run of a project: read, plan, deliver, and check that the tally balances."""
