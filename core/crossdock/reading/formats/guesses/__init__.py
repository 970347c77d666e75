"""The layout of a file, guessed from its first part as a help for a person who writes a config. No run uses it."""
