"""Finding and reading source files: the walk, encodings, the byte prefilter, inline suppressions."""
