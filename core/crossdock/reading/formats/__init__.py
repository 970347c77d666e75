"""Bytes to rows of text columns; files that deviate from the declared layout are refused."""
