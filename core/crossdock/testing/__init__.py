"""Help for tests and for connector authors: servers on this machine, and time that obeys."""
