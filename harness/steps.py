"""Steps: what to do next, as commands with a word about each."""

from __future__ import annotations


def steps(head: str, *rows: tuple[str, str]) -> str:
    """Return ``head`` and below it one line for each command and what it is for, in two columns."""
    width = max(len(command) for command, _ in rows)
    return "\n".join([head, *(f"  {command:<{width}}   {what}" for command, what in rows)])
