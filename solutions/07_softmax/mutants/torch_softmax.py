"""No kernel: torch computes the softmax.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def softmax(x):
    return torch.softmax(x, dim=-1)
