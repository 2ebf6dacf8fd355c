"""No kernel: torch copies.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def copy(x):
    return x.clone()
