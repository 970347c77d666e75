"""A run: from raw rows to operations, in the order that references ask for, with accounts that must balance."""
