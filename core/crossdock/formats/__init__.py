"""Bytes to rows of text columns, one module a format; what deviates from the declared layout is refused."""
