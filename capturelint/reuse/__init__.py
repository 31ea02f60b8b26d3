"""When the result of an earlier check still holds: what it rests on, and where the lines that it names are now."""
