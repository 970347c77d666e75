"""The platform as specified, and the assumptions where the specification is silent."""
