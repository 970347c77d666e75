"""Record -> draft: pure functions without I/O, clock or settings, and their form in config files."""
