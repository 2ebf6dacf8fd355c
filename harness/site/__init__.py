"""The lesson pages: ``lessons/NN_name/`` to files that open by double-click. ``python -m harness.site`` builds them.

From the folder to the page, each step a module: ``lesson`` reads the front matter, ``roles`` computes the numbers,
``lint`` refuses typed ones, ``markup`` makes HTML, ``quiz`` makes the questions, ``bundle`` joins the JavaScript,
``pages`` fills the frame, ``book`` builds all of it, ``serve`` shows it. ``lessons/README.md`` describes the format.
"""
