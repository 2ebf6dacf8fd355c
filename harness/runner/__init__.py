"""A call of somebody else's code in a process of its own, with limits, and what it did as facts."""
