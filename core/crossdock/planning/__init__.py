"""From keyed records of the delta to operations in the order of their references, waiting records, and removals."""
