"""Where things are defined: module index, import resolution, class hierarchy, and the reverse questions."""
