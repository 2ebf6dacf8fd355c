"""How long a launch takes on a GPU that is not here, and what binds: from sampled accesses and compiled facts."""
