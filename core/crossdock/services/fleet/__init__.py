"""One schedule over many tenants, whose runs an executor carries out on this host or on others."""
