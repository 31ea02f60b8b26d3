"""Forks and joins of streams inside captured regions: which streams are part of the capture, and which leave it."""
