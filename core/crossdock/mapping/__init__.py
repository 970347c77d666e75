"""Record -> draft: pure functions without I/O, clock or settings, and their declarative form for config files."""
