"""No kernel: torch adds.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def add(x, y):
    return torch.add(x, y)
