"""The command line: one file a command, each of which reads options, calls the library and writes what it returns."""
