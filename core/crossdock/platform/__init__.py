"""The platform as specified, and what is assumed where the specification is silent."""
