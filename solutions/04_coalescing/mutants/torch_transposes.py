"""No kernel: torch makes the transpose contiguous.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def transpose(x):
    return x.t().contiguous()
