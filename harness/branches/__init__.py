"""The commands that change a checkout: practice, update and reset, over git."""
