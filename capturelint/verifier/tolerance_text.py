"""How a refutation states the tolerance. Apart from ``tolerance.py``, which imports torch."""

STATED = "equal within 1e-5 (float32)"
