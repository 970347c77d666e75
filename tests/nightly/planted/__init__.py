"""Correct example connectors, and the same with one bug each, which the tests of a connector must find."""
