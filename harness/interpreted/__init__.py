"""Triton's interpreter made trustworthy: checked memory, hardware's rounding, shuffled programs."""
