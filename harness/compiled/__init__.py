"""What Triton's compiler made of a kernel: compiled ahead of time for a GPU that need not be here, and read."""
