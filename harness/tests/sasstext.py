"""Programs for tests, written as assembly: one instruction or label a line, the schedule behind a bar.

``@P0 BRA loop | stall 5, write 0, read 1, wait 0 2``. What is left out: stall 1, no barriers. ``text`` writes them as
``nvdisasm -hex -gp`` does, so that every test of a program goes through the parser.
"""

from __future__ import annotations

import re

from harness.compiled.sass import Program, parse


def text(source: str, kernel: str = "k") -> str:
    """Return the disassembler's text of ``source``; ``// 12`` at a line's end is the PTX line it comes from."""
    rows = [f'\t.section\t.text.{kernel},"ax",@progbits', f".text.{kernel}:"]
    at = 0
    for line in filter(None, (x.strip() for x in source.splitlines())):
        if line.endswith(":"):
            rows.append(line)
            continue
        line, _, ptx = line.partition("//")
        if ptx:
            rows.append(f'\t//## File ".nv_debug_ptx_txt", line {int(ptx)}')
        code, _, schedule = line.partition("|")
        # only the target of a branch is a bare word; it is written `(name)
        code = re.sub(r"(BRA\S*(?: !?U?P\d,)?|CALL\S*|BSSY B\d,) ([a-z]\w*)\s*$", r"\1 `(\2)", code.strip())
        rows.append(f"        /*{at:04x}*/                   {code} ;      /* 0x{0:016x} */")
        rows.append(f"                                          /* 0x{_control(schedule) << 41:016x} */")
        at += 16
    return "\n".join([*rows, "\t.section\t.debug_line"])


def program(source: str, ptx: str = "", files: tuple[str, ...] = ()) -> Program:
    """Return the parsed program."""
    return parse(text(source), "k", files, ptx)


def _control(schedule: str) -> int:
    found = {"stall": 1, "write": 7, "read": 7}
    wait = 0
    for part in filter(None, (p.strip() for p in schedule.split(","))):
        name, *numbers = part.split()
        if name == "wait":
            wait = sum(1 << int(n) for n in numbers)
        else:
            found[name] = int(numbers[0])
    return found["stall"] | found["write"] << 5 | found["read"] << 8 | wait << 11
