"""Code that attacks, crashes or runs away ends as a verdict in the kata's time; the next submission is judged as ever."""

from __future__ import annotations

import pytest

from harness.tests.toys import BODY, ENTRY, SOLUTION, TOML, kernel, write_kata

FORGED = "import os\n    for fd in range(3, 256):\n        try: os.write(fd, b'\\x02' + b'\\0' * 7 + b'{}' * 100)\n        except OSError: pass"
DEAF = "import signal; [signal.signal(s, signal.SIG_IGN) for s in range(1, 32) if s not in (9, 17, 19)]"


def attacks(line: str) -> str:
    """Return a right submission that runs ``line`` before its launch."""
    return SOLUTION.replace("x = x.contiguous()", f"x = x.contiguous()\n    {line}")


TIMEOUT = {
    "an endless loop": (attacks("while True: pass"), "no answer within 1 s. It was at line 15."),
    "an endless loop in a kernel": (kernel("i = 0\nwhile i < n:\n    i += 0\n" + BODY.replace("\n    ", "\n")), "It was at line 1"),
    "an endless loop at import": ("while True: pass\n", "It was at line 1."),
    "it catches everything and hears nothing": (
        attacks(f"{DEAF}\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"), "no answer within 1 s.",
    ),
}  # fmt: skip

DAEMON = "import os, time\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n    time.sleep(60)"
BOMB = "import os\n    for _ in range(9): os.fork()"

ERROR = {
    "a child that stays": (attacks("import os, time\n    if os.fork() == 0:\n        time.sleep(60)"), "started processes that did not end"),
    "it becomes a daemon": (attacks(DAEMON), "started processes that did not end"),
    "hundreds of processes": (attacks(BOMB), "started processes that did not end"),
    "another program": (attacks("import os; os.system('true')"), "line 15: PermissionError: code under test may not start a program: os.system."),
    "another Python": (attacks("import subprocess, sys; subprocess.run([sys.executable, '-c', ''])"), "may not start a program: subprocess.Popen."),
    "a signal to its parent": (attacks("import os; os.kill(os.getppid(), 9)"), "may not send a signal to another process"),
    "more output than a disk holds": (attacks("import os\n    while True: os.write(1, bytes(1 << 24))"), "File too large"),
    "a file without end": (attacks("import tempfile\n    with tempfile.TemporaryFile() as f:\n        while True: f.write(bytes(1 << 24))"), "File too large"),
    "os._exit": (attacks("import os; os._exit(0)"), "your code ended its process (exit status 0) before it returned a result."),
    "os._exit with a status": (attacks("import os; os._exit(3)"), "(exit status 3)"),
    "sys.exit": (attacks("import sys; sys.exit(0)"), "line 15: SystemExit: 0"),
    "pytest.exit": (attacks("import pytest; pytest.exit('bye', 0)"), "line 15: Exit: bye"),
    "pytest.skip": (attacks("import pytest; pytest.skip('bye')"), "line 15: Skipped: bye"),
    "KeyboardInterrupt": (attacks("raise KeyboardInterrupt"), "line 15: KeyboardInterrupt"),
    "a crash": (attacks("import ctypes; ctypes.string_at(0)"), "the process died of SIGSEGV in your code"),
    "a signal to itself": (attacks("import os; os.kill(os.getpid(), 15)"), "the process died of SIGTERM"),
    "a signal to its group": (attacks("import os; os.killpg(0, 9)"), "the process died of SIGKILL"),
    "more memory than there is": (attacks("big = torch.ones(1 << 40)"), "line 15: RuntimeError:"),
    "it reads from the terminal": (attacks("input()"), "line 15: EOFError"),
    "two processes that report": (attacks("import os; os.fork() or os.wait()"), "did"),
    "it closes our files": (attacks("import os; os.closerange(3, 256)"), "cannot be read"),
    "it closes all files": (attacks("import os; os.closerange(0, 256)"), "cannot be read"),
    "it writes to our files": (attacks(FORGED), "cannot be read"),
    "it forgets all modules": (attacks("import sys; sys.modules.clear()"), "line 16: AttributeError"),
}  # fmt: skip

PASS = {
    "megabytes of output": attacks("print('x' * 20_000_000)"),
    "a thread that is left waiting": attacks("import threading; threading.Thread(target=threading.Event().wait).start()"),
    "a thread that is left running": attacks(
        "import threading\n    def spin():\n        while True: pass\n    threading.Thread(target=spin, daemon=True).start()"
    ),
    "it scans all objects": attacks("import gc\n    [t.numel() for t in gc.get_objects() if isinstance(t, torch.Tensor)]"),
    "it leaves the folder": attacks("import os; os.chdir('/')"),
    "it clears the environment": attacks("import os; os.environ.clear()"),
    "it closes standard output": attacks("import sys; sys.stdout.close()"),
    "it has no standard output": attacks("import sys; sys.stdout = sys.stderr = None"),
    "another default dtype": attacks("torch.set_default_dtype(torch.float64)"),
    "a seed": attacks("torch.manual_seed(0)"),
}  # fmt: skip


def ids(table):
    return [name.replace(" ", "-") for name in table]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """Return the toy kata with 1 s a case."""
    toml = TOML.replace("time_limit = 20", "time_limit = 1")
    return write_kata(tmp_path_factory.mktemp("hasty"), exercise=toml)


@pytest.fixture
def still_judges(judge):
    """Judge a right submission after the test: whatever it did, the server must be as before."""
    yield
    facts = judge(SOLUTION)
    assert facts["word"] == "pass", facts["reason"]


@pytest.mark.usefixtures("still_judges")
@pytest.mark.parametrize(("source", "says"), TIMEOUT.values(), ids=ids(TIMEOUT))
def test_what_does_not_end_is_a_timeout(judge, hasty, source, says):
    facts = judge(source, kata=hasty)

    assert facts["word"] == "timeout"
    assert says in facts["reason"]


@pytest.mark.usefixtures("still_judges")
@pytest.mark.parametrize(("source", "says"), ERROR.values(), ids=ids(ERROR))
def test_what_breaks_is_an_error(judge, source, says):
    facts = judge(source)

    assert facts["word"] == "error", facts["reason"]
    assert says in facts["reason"]


@pytest.mark.usefixtures("still_judges")
@pytest.mark.parametrize("source", PASS.values(), ids=ids(PASS))
def test_what_is_odd_and_right_passes(judge, source):
    facts = judge(source)

    assert facts["word"] == "pass", facts["reason"]


def test_what_the_code_printed_is_kept(judge):
    facts = judge(attacks("print('hello'); import sys; print('and here', file=sys.stderr)").replace("x * 2", "x * 3"))

    assert facts["word"] == "wrong"
    assert facts["printed"].split()[:3] == ["hello", "and", "here"]


def test_the_reference_is_nowhere_in_the_child(judge):
    """Expected values would be the easiest way to be right: the module is not among those that are imported."""
    look = "import sys\n    assert not [n for n in sys.modules if 'reference' in n and 'double' in n]"

    assert judge(attacks(look))["word"] == "pass"


# the harness says that it failed itself: a child that leaves with our own status is taken at its word
def test_a_forged_failure_of_the_harness_is_an_error(judge):
    facts = judge(attacks("import os; print('harness: hello', flush=True); os._exit(70)"))

    assert facts["word"] == "error"


def test_a_submission_that_changes_between_two_cases_is_read_again(judge, tmp_path, kata):
    """Nothing of a file is remembered from one case to the next."""
    assert judge(SOLUTION)["word"] == "pass"
    assert judge(SOLUTION.replace("x * 2", "x * 3"))["word"] == "wrong"
    assert (
        judge(
            kernel(
                BODY,
                "\nCOUNT = []\n" + ENTRY.replace("return out", "COUNT.append(1); assert len(COUNT) < 9; return out"),
            )
        )["word"]
        == "pass"
    )
