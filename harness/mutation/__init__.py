"""``nox -s mutants``: small mistakes made in every solution, and whether its suite sees each one."""
