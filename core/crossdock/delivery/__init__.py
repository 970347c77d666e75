"""Everything between an operation and its settled fate."""
