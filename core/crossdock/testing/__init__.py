"""Test support for crossdock and for connector authors: local servers, and a clock that is advanced by hand."""
