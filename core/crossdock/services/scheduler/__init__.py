"""The service that starts due runs."""
