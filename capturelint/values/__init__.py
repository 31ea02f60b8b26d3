"""The abstract values and the evaluator: it enters what a region calls, and leaves facts by (context, source span)."""
