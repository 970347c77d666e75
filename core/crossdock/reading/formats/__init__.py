"""The formats of files. A file that deviates from its declared layout is refused."""
