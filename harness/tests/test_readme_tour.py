"""README.md shows what a learner will see."""

from harness.tests import readme_tour


def test_the_tour_is_what_the_commands_print():
    shown = readme_tour.shown()
    assert set(shown) == set(readme_tour.STEPS)
    for name, block in readme_tour.printed():
        block = readme_tour.without_new_katas(block, shown[name])
        assert readme_tour.settled(shown[name]) == readme_tour.settled(block), (
            f"the block tour:{name} of README.md is old; run: python -m harness.tests.readme_tour"
        )
