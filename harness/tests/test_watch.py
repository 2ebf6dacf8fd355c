"""Every save is graded, soon, once, and in whatever way the editor saves; a fake grader keeps these tests fast."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from harness.loop import watch
from harness.loop.rerun import Grader, end_keepers
from harness.loop.saves import is_silent
from harness.tests import toys
from harness.verdict import Verdict

# the first line of a kernel says how its grading goes: `# <verdict> <seconds> <reason>`
FAKE = """
import json, sys, time
words = open(sys.argv[1]).readline().split(None, 3)
time.sleep(float(words[2]))
word, reason = words[1], " ".join(words[3:]).strip()
if word == "fault":
    print("one line\\n\\nthe last line")
    sys.exit(3)
print("Not recorded: the disk is full." if word == "slow" else "")
counts = {"bytes": 100, "least_bytes": 100, "sectors": 8, "least_sectors": 4, "launches": 1 + (word != "pass"),
          "programs": 2, "bench_programs": 0}
kata = {"verdict": word, "reason": reason, "tests": {"a": "passed", "b": "passed" if word == "pass" else "failed"},
        "speed": {"counts": counts} if word in ("pass", "slow") else None, "findings": [], "not_checked": [], "seed": 1,
        "whole_suite": True}
json.dump({"katas": {sys.argv[3]: kata}}, open(sys.argv[2], "w"))
"""
LONG = 20.0  # seconds after which a wait has failed; a busy machine is slow


class Noting(Grader):
    """A grader that notes when it started on which first line, and what became of it."""

    def __init__(self, course):
        super().__init__(course, command=self._fake)
        self.starts: list[tuple[float, str]] = []
        self.reruns = []

    def start(self, kata, text, options=()):
        self.starts.append((time.monotonic(), (text.splitlines() or [""])[0]))
        self.reruns.append(super().start(kata, text, options))
        return self.reruns[-1]

    @staticmethod
    def _fake(kata, verdicts, options):
        return [sys.executable, "-I", "-S", "-c", FAKE, str(kata.stub), str(verdicts), kata.slug]


class Watched:
    """A watch that runs in a thread; ``saw`` waits for text on its screen."""

    def __init__(self, course, katas=None, polling=None):
        self.course, self.text, self.stop = course, io.StringIO(), threading.Event()
        self.grader = Noting(course)
        screen = watch.Screen(Console(file=self.text, width=60, highlight=False))
        self.watcher = watch.Watcher(katas or course.katas, self.grader, screen)
        self.thread = threading.Thread(target=self._run, args=(polling,), daemon=True)

    def _run(self, polling):
        with self.grader:
            self.watcher.loop(self.stop, polling)
            self.watcher.end()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()

    @property
    def screen(self):
        """What is on the screen; durations become S."""
        return re.sub(r"\d+\.\d s", "S s", self.text.getvalue())

    def saw(self, text, times=1):
        """Wait until ``text`` is on the screen."""
        until(lambda: self.screen.count(text) >= times, lambda: f"{text!r} never came:\n{self.screen}")

    def began(self, count):
        """Wait until so many reruns were started."""
        until(lambda: len(self.grader.starts) >= count, lambda: f"{self.grader.starts}\n{self.screen}")


def until(holds, why):
    """Wait for a condition."""
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, why()
        time.sleep(0.005)


def settled():
    """Give a rerun that must not come the time to come."""
    time.sleep(0.6)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """It is always the same time of day."""
    monkeypatch.setattr(watch, "_clock", lambda: "12:00:00")


@pytest.fixture
def course(tmp_path):
    """A course with two katas whose kernels are graded at once."""
    return toys.write_course(
        tmp_path / "course", {"01_double": {"kernel.py": "# wrong 0 no\n"}, "02_twice": {"kernel.py": "# pass 0\n"}}
    )


@pytest.fixture
def watched(course):
    """A watch of the first kata, which was graded once."""
    with Watched(course, course.katas[:1]) as out:
        out.saw("wrong")
        yield out


@pytest.fixture
def kernel(course):
    """The file that is saved."""
    return course.katas[0].stub


def test_each_rerun_says_time_verdict_reason_and_what_changed(watched, kernel):
    kernel.write_text("# slow 0 it moves [twice] the bytes\nx = 1\ny = 2\n")
    watched.saw("slow")
    kernel.write_text("# pass 0\nx = 1\n")
    watched.saw("pass")
    watched.stop.set()
    watched.thread.join(LONG)

    assert watched.screen == (
        "Watching exercises/01_double/kernel.py: graded at every save. Ctrl-C ends.\n"
        "12:00:00  01_double  wrong   1 of 2 tests, S s\n"
        "          no\n"
        "12:00:00  01_double  slow   1 of 2 tests, S s\n"
        "          it moves [twice] the bytes\n"
        "          counted: 1.00x the least bytes, 2.00x the least sectors, 2 launches, 2 programs\n"
        "          changed: was wrong; +3 -1 lines at 1\n"
        "          Not recorded: the disk is full.\n"
        "12:00:00  01_double  pass   2 of 2 tests, S s\n"
        "          counted: 1.00x the least bytes, 2.00x the least sectors, 1 launch, 2 programs\n"
        "          changed: was slow; +1 -2 lines at 1, 3; launches 2 -> 1\n"
        "Watch ended; graded 3 times.\n"
    )


def test_a_rerun_starts_within_0_3_seconds_of_a_save(watched, kernel):
    late = []
    for i in range(4):
        saved = time.monotonic()
        kernel.write_text(f"# wrong 0 save {i}\n")
        watched.saw(f"save {i}")
        late.append(watched.grader.starts[-1][0] - saved)

    assert min(late) < 0.3, late  # the least: other work on this machine may delay one or two
    assert len(watched.grader.starts) == 5


def test_a_burst_of_saves_is_graded_once_as_it_was_left(watched, kernel):
    for i in range(5):
        kernel.write_text(f"# wrong 0 save {i}\n")
        time.sleep(0.02)
    watched.saw("save 4")
    settled()

    assert [text for _, text in watched.grader.starts] == ["# wrong 0 no", "# wrong 0 save 4"]


def test_a_save_during_a_rerun_stops_it_and_starts_anew(watched, kernel):
    kernel.write_text("# wrong 60 too long\n")
    watched.began(2)
    time.sleep(0.3)  # the rerun has read its file by then, and goes on for a minute
    kernel.write_text("# wrong 0 quick\n")
    watched.saw("quick")

    assert watched.grader.reruns[1].process.returncode == -signal.SIGKILL
    assert "12:00:00  01_double  changed meanwhile: starting anew\n" in watched.screen
    assert "too long" not in watched.screen


def by_renaming_over(kernel, text):
    draft = kernel.with_name(".kernel.py.tmp")
    draft.write_text(text)
    os.replace(draft, kernel)


def by_backup_and_new_file(kernel, text):
    kernel.rename(kernel.with_name("kernel.py~"))
    kernel.write_text(text)


def by_removing_and_creating(kernel, text):
    kernel.unlink()
    time.sleep(0.02)
    kernel.write_text(text)


def by_truncating_first(kernel, text):
    with open(kernel, "w") as file:
        file.flush()
        time.sleep(0.02)
        file.write(text)


@pytest.mark.parametrize(
    "save", [by_renaming_over, by_backup_and_new_file, by_removing_and_creating, by_truncating_first]
)
def test_editors_save_in_many_ways(watched, kernel, save):
    for i in range(2):
        save(kernel, f"# wrong 0 save {i}\n")
        watched.saw(f"save {i}")

    assert "gone" not in watched.screen
    assert len(watched.grader.starts) == 3


def test_a_file_that_is_deleted_is_graded_when_it_is_back(watched, kernel):
    kernel.unlink()
    watched.saw("12:00:00  01_double  kernel.py is gone; it is graded when it is back\n")
    kernel.write_text("# pass 0\n")

    watched.saw("pass")


def test_a_folder_that_is_replaced_is_watched_again(watched, kernel):
    folder = kernel.parent
    shutil.move(folder, folder.with_name("aside"))
    watched.saw("gone")
    shutil.copytree(folder.with_name("aside"), folder)
    watched.saw("wrong", times=2)
    time.sleep(1.2)  # by now the new folder's events are waited for
    kernel.write_text("# pass 0\n")

    watched.saw("pass")


def test_saving_the_same_text_again_grades_again(watched, kernel):
    kernel.write_text(kernel.read_text())

    watched.saw("wrong", times=2)
    assert "changed" not in watched.screen


def test_what_is_no_save_is_not_graded(watched, kernel):
    kernel.chmod(0o600)
    (kernel.parent / ".kernel.py.swp").write_text("swap")
    (kernel.parent / "README.md").write_text("read")
    kernel.read_text()
    settled()

    assert len(watched.grader.starts) == 1


def test_the_kata_that_was_saved_is_graded_and_no_other(course):
    with Watched(course) as watched:
        watched.saw("pass")
        course.katas[1].stub.write_text("# wrong 0 twice\n")
        watched.saw("twice\n")
        settled()

        assert [text for _, text in watched.grader.starts] == ["# wrong 0 no", "# pass 0", "# wrong 0 twice"]
        assert watched.screen.startswith(
            "Watching exercises/01_double/kernel.py, exercises/02_twice/kernel.py: graded at every save. Ctrl-C ends.\n"
        )


def test_where_there_are_no_events_it_polls(course, kernel):
    with Watched(course, course.katas[:1], polling=True) as watched:
        watched.saw("wrong")
        for i in range(2):
            by_renaming_over(kernel, f"# wrong 0 save {i}\n")
            watched.saw(f"save {i}")


def test_where_no_watches_are_left_it_polls(course, kernel, monkeypatch):
    import watchfiles

    real = watchfiles.watch

    def full(*folders, force_polling, **options):
        if not force_polling:
            raise OSError(28, "OS file watch limit reached")
        yield from real(*folders, force_polling=True, **options)

    monkeypatch.setattr(watchfiles, "watch", full)
    with Watched(course, course.katas[:1]) as watched:
        watched.saw("wrong")
        kernel.write_text("# pass 0\n")
        watched.saw("pass")


def test_a_grader_that_fails_is_said_and_the_watch_goes_on(watched, kernel):
    kernel.write_text("# fault 0\n")
    watched.saw("the last line")
    kernel.write_text("# pass 0\n")
    watched.saw("pass")

    assert (
        "12:00:00  01_double  no verdict; `nox -s doctor` looks for the cause. What was said last:\n"
        "          one line\n"
        "          the last line\n"
    ) in watched.screen


def test_the_end_stops_what_runs(watched, kernel):
    kernel.write_text("# wrong 60 too long\n")
    watched.began(2)
    watched.stop.set()
    watched.thread.join(LONG)

    assert watched.grader.reruns[1].process.returncode == -signal.SIGKILL
    assert watched.screen.endswith("Watch ended; graded 1 time.\n")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a\nb\n", "a\nb\n", ""),
        ("a\nb\n", "a\nc\n", "+1 -1 lines at 2"),
        ("a\n", "a\nb\n", "+1 line at 2"),
        ("a\nb\nc\n", "a\nc\n", "-1 line at 2"),
        ("a\nb\nc\nd\ne\nf\ng\nh\n", "A\nb\nC\nd\nE\nf\nG\nh\n", "+4 -4 lines at 1, 3, 5 and below"),
    ],
)
def test_edited(before, after, said):
    assert watch.edited(before, after) == said


def test_moved_names_the_counters_that_changed():
    before = {"counts": {"bytes": 2000, "sectors": 8, "launches": 3}}
    after = {"counts": {"bytes": 1000, "sectors": 8, "launches": 1}}

    assert watch.moved(before, after) == "bytes 2,000 -> 1,000, launches 3 -> 1"
    assert watch.moved(None, after) == ""


MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:30 / /mnt/c rw,noatime - 9p C:\134 rw
41 27 0:31 / /mnt/my\040disk rw - fuse.sshfs me@there rw
42 40 0:32 / /mnt/c/ram rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "silent"),
    [
        ("/home/me/kata", False),
        ("/mnt/c/kata", True),
        ("/mnt/cc", False),
        ("/mnt/my disk/x", True),
        ("/mnt/c/ram/x", False),
    ],
)
def test_file_systems_without_events_are_known(path, silent):
    assert is_silent(Path(path), MOUNTS) is silent


def test_the_keepers_of_a_server_end_and_the_server_stays():
    code = (
        "import subprocess, time\n"
        "keeper = subprocess.Popen(['sh', '-c', 'sleep 60 & wait'], start_new_session=True)\n"
        "other = subprocess.Popen(['sleep', '60'])\n"
        "print(other.pid, flush=True)\n"
        "print(keeper.wait(), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        try:
            other = int(server.stdout.readline())
            end_keepers(server.pid)

            assert server.stdout.readline() == f"{-signal.SIGKILL}\n"
            assert server.poll() is None
            os.kill(other, 0)
        finally:
            os.kill(other, signal.SIGKILL)
            server.kill()


def test_an_unknown_kata_is_one_sentence(course, capsys, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    assert watch.main(["03"], course.root) == 1
    assert capsys.readouterr() == ("", "There is no kata '03'; there are 01_double, 02_twice.\n")


def test_a_terminal_shows_colours_and_that_grading_is_under_way():
    text = io.StringIO()
    screen = watch.Screen(Console(file=text, force_terminal=True, width=80, highlight=False, color_system="standard"))
    kata = toys.load_course().katas[0]
    screen.grading(kata)
    screen.graded(Verdict("01_double", "pass", "", {"a": "passed"}), None, "", 1.0)

    assert "grading …" in text.getvalue()
    assert "\x1b[32mpass\x1b[0m" in text.getvalue()


def test_for_real_a_syntax_error_is_a_verdict_and_ctrl_c_ends_with_one_line(tmp_path):
    course = toys.write_course(tmp_path, {"01_double": {"kernel.py": "def double(x:\n"}})
    code = (
        "import sys; from pathlib import Path; from harness.loop.watch import main; sys.exit(main(['01'], Path.cwd()))"
    )
    env = dict(os.environ) | {"PYTHONPATH": str(toys.ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        lines = [process.stdout.readline() for _ in range(3)]
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read()

    assert lines[0] == "Watching exercises/01_double/kernel.py: graded at every save. Ctrl-C ends.\n"
    assert re.fullmatch(r"\d\d:\d\d:\d\d  01_double  error   0 of \d tests, \d+\.\d s\n", lines[1])
    assert lines[2] == "          line 1: '(' was never closed\n"
    assert rest == "Watch ended; graded 1 time.\n"
    assert process.returncode == 0
    assert course.root.joinpath("records", "attempts").is_dir()
