"""Kernel Kata's harness: from a folder with an exercise to a verdict that can be trusted.

The pipeline, in the order in which a run goes through it::

    exercise.toml -> Spec -> Case -> inputs -> the learner's kernel -> facts -> Verdict -> report

``course`` finds the folders, ``spec`` reads them, ``strategies`` draws cases, ``runner.client`` sends a case to the
fork server, ``runner.keeper`` (there) builds the inputs, lets a child run the learner's file and judges what came back,
``verdict`` folds the tests of a kata into one word, ``report`` prints it. ``plugin`` is what pytest sees of all this.

The packages, from the bottom:

- ``interpreted``: Triton's interpreter made trustworthy. ``compiled``: what the compiler made of a kernel, read.
  ``measured``: a kernel on a real GPU. Three ways in which the same call runs.
- ``runner``: the processes around them, and what a call did as facts. ``diagnosis``: facts in a learner's words.
- ``model``: from sampled accesses and compiled facts to a time on a GPU that is not here. ``zoo``: how near it comes.
- ``loop`` and ``branches``: the commands of a learner's day. ``course_check`` and ``mutation``: the course proves
  itself.
- ``site``: the lessons become pages.
"""

from harness.course import Course, Kata, load_course
from harness.errors import KataError
from harness.spec import Case, Cost, Spec, load_spec

__all__ = ["Case", "Cost", "Course", "Kata", "KataError", "Spec", "load_course", "load_spec"]
