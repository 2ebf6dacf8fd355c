"""A desk without a fork server: what it sends is kept, and what it gets was written down before."""

from __future__ import annotations

from harness.desk import Choices, Desk
from harness.device import find_device
from harness.spec import Case
from harness.tests.toys import write_kata

CASE = Case("M3-N5", {"M": 3, "N": 5}, "float32")


def passing(*keys):
    return {
        "word": "pass",
        "reason": "",
        "findings": [],
        "not_checked": [],
        "launches": [{"key": k, "kernel": "k", "grid": [1, 1, 1]} for k in keys],
    }


def failing(word="wrong", reason="values differ\nmore", **more):
    return {"word": word, "reason": reason, "findings": [], "not_checked": [], "launches": []} | more


def compiled(*keys, word="pass", **more):
    return passing(*keys) | {"word": word, "compiled": dict.fromkeys(keys, {})} | more


class Line:
    """Stands for a connection: answers from a list, and keeps what was sent."""

    def __init__(self, answers=()):
        self.answers, self.sent = list(answers), []

    def send(self, request):
        self.sent.append(request)

    def receive(self):
        return self.answers.pop(0)

    def ask(self, request):
        self.send(request)
        return self.receive()


def maker(tmp_path):
    """Return a function: answers of the interpreter and of the compiler -> a desk."""

    def make(interpret=(), compile=(), **choices):
        kata = write_kata(tmp_path / "course")
        lines = {"interpret": Line(interpret), "compile": Line(compile)}
        given = {"seed": 7, "device": "cpu", "gpu": find_device("H200")} | choices
        desk = Desk(kata, kata.stub, Choices(**given), lines.__getitem__)
        desk.lines = lines
        return desk

    return make
