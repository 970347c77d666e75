"""The tables of the state, one module for each concern."""
