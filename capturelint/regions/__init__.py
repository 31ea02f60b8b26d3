"""One file per way to declare a region; ``find`` asks them all, ``enter`` evaluates what they found."""
