"""Kernels whose times are known, and how near the speed model comes to them."""
