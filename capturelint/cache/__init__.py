"""Results on disk. A cache that is missing, broken or not writable reads as empty, and is no error."""
