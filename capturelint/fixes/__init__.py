"""Fixes: what to write in place of a hazard, and how it gets into the files."""
