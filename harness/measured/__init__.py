"""On a real GPU: kernels run, timed and recorded as evidence."""
