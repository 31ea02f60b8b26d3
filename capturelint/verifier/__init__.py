"""The runtime verifier: captures and replays regions on a GPU, and gives findings a verdict. It runs the user's code.

Only ``worker`` and what it imports need torch. The parent side (``run``, ``parent``, ``plan``, ``verdicts``) does not.
"""
