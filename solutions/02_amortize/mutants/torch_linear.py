"""No kernel: torch multiplies.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def linear(x, weight):
    return torch.nn.functional.linear(x, weight)
