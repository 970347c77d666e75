"""Turns the settings of a connection into batches of rows, with evidence that all of them were read."""
