"""Reports of a run: text for people, JSON for tools, and the exit status."""
