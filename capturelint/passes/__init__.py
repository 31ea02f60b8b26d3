"""One LibCST pass per hazard family: they open functions that hold a candidate, and ask for the facts at a node."""
