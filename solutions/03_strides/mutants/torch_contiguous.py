"""No kernel: torch does it.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def contiguous(x):
    return x.clone(memory_format=torch.contiguous_format)
