"""The platform as platform-spec.md describes it, and what we assume where it is silent."""
