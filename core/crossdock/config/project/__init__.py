"""A config file to a project: the platform, the state, the connections and their streams."""
