"""The service that runs jobs when they are due."""
