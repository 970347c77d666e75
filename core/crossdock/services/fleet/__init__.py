"""One schedule over many tenants, whose runs an executor executes on this host or on others."""
