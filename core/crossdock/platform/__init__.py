"""The platform as its specification describes it, and what we assume where that is silent."""
