"""Kernel Kata's harness: from a folder with an exercise to a verdict that can be trusted.

The pipeline, in the order in which a run goes through it::

    exercise.toml -> Spec -> Case -> inputs -> the learner's kernel -> facts -> Verdict -> report

``course`` finds the folders, ``spec`` reads them, ``strategies`` draws cases, ``client`` sends a case to the fork
server, ``keeper`` (there) builds the inputs, lets a child run the learner's file and judges what came back, ``plugin``
folds the tests of a kata into one verdict, ``report`` prints it.
"""

from harness.course import Course, Kata, load_course
from harness.errors import KataError
from harness.spec import Case, Cost, Spec, load_spec

__all__ = ["Case", "Cost", "Course", "Kata", "KataError", "Spec", "load_course", "load_spec"]
