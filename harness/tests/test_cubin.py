"""What can go wrong with a compiled file is one sentence."""

from __future__ import annotations

import pytest

from harness.compiled import cubin
from harness.compiled.cubin import SassError, disassemble, resources


def test_a_file_that_is_no_elf_is_refused():
    with pytest.raises(SassError, match="no 64-bit ELF"):
        resources(b"hello", "k")


def test_without_a_disassembler_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cubin, "tool", lambda name: None)

    with pytest.raises(SassError, match="nvdisasm was not found.*reinstall triton"):
        disassemble(b"")


def test_a_disassembler_that_refuses_is_quoted(monkeypatch, tmp_path):
    fake = tmp_path / "nvdisasm"
    fake.write_text("#!/bin/sh\necho 'fatal: not a cubin' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(cubin, "tool", lambda name: fake)

    with pytest.raises(SassError, match="fatal: not a cubin"):
        disassemble(b"x")


def test_a_disassembler_that_hangs_is_given_up(monkeypatch, tmp_path):
    fake = tmp_path / "nvdisasm"
    fake.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(cubin, "tool", lambda name: fake)

    with pytest.raises(SassError, match="did not answer"):
        disassemble(b"x", seconds=0.2)
