"""Sources: files with their intake checks, and paged HTTP."""
