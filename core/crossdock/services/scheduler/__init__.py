"""The service that starts runs when they are due."""
