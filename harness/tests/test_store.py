"""The store: what was recorded is read after kills, races, full disks, damage and merges; what is not read is said."""

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import store as store_module
from harness.errors import KataError, StoreError
from harness.record import Attempt, stamp
from harness.store import Store
from harness.streaks import day_streak, standings

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
CLONE = "0123456789ab"
FILE = f"records/attempts/{CLONE}.jsonl"


def event(minute: float = 0, **changes) -> Attempt:
    """Return an event so many minutes after the first."""
    time = stamp(START + timedelta(minutes=minute))
    return Attempt(**{"id": "nf4", "slug": "05_nf4", "verdict": "wrong", "time": time, "seed": int(minute)} | changes)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Spare a busy disk: what fsync guards against, a power cut, no test can make. Two tests look for the calls."""
    monkeypatch.setattr(store_module.os, "fsync", lambda fd: None)


@pytest.fixture
def store(tmp_path) -> Store:
    """A store of a clone whose name is known."""
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / ".clone-id").write_text(f"{CLONE}\n", encoding="ascii")
    return Store(tmp_path / "records")


@pytest.fixture
def file(store) -> Path:
    """The file that ``store`` writes."""
    store.attempts.mkdir()
    return store.attempts / f"{CLONE}.jsonl"


@contextlib.contextmanager
def mounted(place: Path, *how: str):
    """Mount something over ``place``; skip the test where that is not allowed."""
    if shutil.which("mount") is None or subprocess.run(["mount", *how, str(place)], capture_output=True).returncode:
        pytest.skip("mounting needs root and a kernel that allows it")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def refuse(monkeypatch, number: int, after: int = 0) -> None:
    """Let the disk take ``after`` more bytes of each write, then refuse with this errno."""

    def write(fd: int, data: bytes) -> int:
        if after:
            return os.write(fd, bytes(data)[:after])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store_module, "_write", write)


def child(*args: str) -> str:
    """Run ``store_child``, which forks."""
    command = [sys.executable, "-W", "error", "-m", "harness.tests.store_child", *args]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


# -- writing and reading ---------------------------------------------------------------------------------------------


def test_nothing_is_there_before_the_first_write(tmp_path):
    store = Store(tmp_path / "records")

    assert store.history() == ([], [])
    assert not store.folder.exists()


def test_what_was_appended_is_read_in_order(store):
    written = [store.append(event(n)) for n in range(5)]

    assert written == [event(n) for n in range(5)]
    assert Store(store.folder).history() == (written, [])
    assert [p.name for p in store.attempts.iterdir()] == [f"{CLONE}.jsonl"]


def test_a_line_is_one_write_that_reaches_the_disk(store, monkeypatch):
    calls = []
    monkeypatch.setattr(store_module, "_write", lambda fd, data: calls.append("write") or os.write(fd, data))
    monkeypatch.setattr(store_module.os, "fsync", lambda fd: calls.append("fsync"))
    store.append(event())
    store.append(event(1))

    assert calls == ["write", "fsync", "fsync", "write", "fsync"]  # the first makes a name in a folder, too


def test_a_clock_that_goes_back_does_not_turn_the_history_around(store):
    minutes = [10, 20, 5, 6, 30, 1]
    written = [store.append(event(n)) for n in minutes]
    events, problems = store.history()

    assert [e.seed for e in events] == minutes
    assert events == written
    assert problems == []
    assert [e.time for e in events] == [event(n).time for n in minutes]
    later = [e.after and (datetime.fromisoformat(e.after) - START) / timedelta(minutes=1) for e in events]
    assert later == ["", "", 20, 20, "", 30]


def test_a_large_line_is_found_again_though_the_tail_does_not_hold_it(store):
    store.append(event(9, versions={"pad": "x" * 100_000}))
    store.append(event(1))

    assert [e.seed for e in store.history()[0]] == [9, 1]


# -- the clone's name ------------------------------------------------------------------------------------------------


def git_dir(folder: Path) -> Path:
    """Make what git needs to know its directory by."""
    folder.mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    return folder


def test_the_clone_is_named_once_in_its_git_directory(tmp_path):
    git = git_dir(tmp_path / ".git")
    name = Store(tmp_path / "records").clone_id()

    assert re.fullmatch("[0-9a-f]{12}", name)
    assert (git / "kata-clone-id").read_text() == f"{name}\n"
    assert Store(tmp_path / "records").clone_id() == name
    assert not (tmp_path / "records").exists()
    assert sorted(p.name for p in git.iterdir()) == ["HEAD", "kata-clone-id"]


def test_two_clones_have_two_names(tmp_path):
    names = {Store(git_dir(tmp_path / n / ".git").parent / "records").clone_id() for n in "abc"}

    assert len(names) == 3


def test_a_worktree_is_a_clone_of_its_own(tmp_path):
    main = git_dir(tmp_path / "main" / ".git")
    mine = git_dir(main / "worktrees" / "second")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / ".git").write_text(f"gitdir: {mine}\n", encoding="utf-8")
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / ".git").write_text("gitdir: ../main/.git/worktrees/second\n", encoding="utf-8")
    name = Store(tmp_path / "second" / "records").clone_id()

    assert (mine / "kata-clone-id").read_text() == f"{name}\n"
    assert Store(tmp_path / "third" / "records").clone_id() == name
    assert Store(tmp_path / "main" / "records").clone_id() != name


@pytest.mark.parametrize("git", ["none", "empty folder", "file of nonsense"])
def test_without_git_the_name_stands_in_records_and_is_ignored(tmp_path, git):
    if git == "empty folder":
        (tmp_path / ".git").mkdir()
    elif git == "file of nonsense":
        (tmp_path / ".git").write_bytes(b"\xff\xfe")
    name = Store(tmp_path / "records").clone_id()

    assert (tmp_path / "records" / ".clone-id").read_text() == f"{name}\n"
    assert Store(tmp_path / "records").clone_id() == name
    assert ".clone-id" in (ROOT / "records" / ".gitignore").read_text().splitlines()


def test_a_git_directory_that_cannot_be_written_leaves_the_name_to_records(tmp_path, monkeypatch):
    git_dir(tmp_path / ".git")
    put = store_module._put

    def only_records(path: Path, data: bytes) -> None:
        if ".git" in path.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        put(path, data)

    monkeypatch.setattr(store_module, "_put", only_records)
    name = Store(tmp_path / "records").clone_id()

    assert Store(tmp_path / "records").clone_id() == name
    assert (tmp_path / "records" / ".clone-id").exists()


@pytest.mark.parametrize("text", ["", "0123", "../../../etc/pw"])
def test_a_name_that_is_none_is_made_anew(tmp_path, text):
    git = git_dir(tmp_path / ".git")
    (git / "kata-clone-id").write_text(text, encoding="ascii")
    name = Store(tmp_path / "records").clone_id()

    assert re.fullmatch("[0-9a-f]{12}", name)
    assert (git / "kata-clone-id").read_text() == f"{name}\n"


# -- kills and races -------------------------------------------------------------------------------------------------


def test_killed_at_200_random_moments_it_loses_no_line_that_was_written(tmp_path):
    kills = [json.loads(line) for line in child("killed", str(tmp_path), "200").splitlines()]
    torn = 0
    for writer, returned, found, problems in kills:
        last = [p for p in problems if "incomplete" in p]
        healed = [p for p in problems if "damaged" in p]
        torn = torn * (writer % 10 > 0) + len(last)
        assert found == list(range(len(found))), writer
        assert returned <= len(found) <= returned + 1, writer
        assert len(last) <= 1
        assert problems == healed + last or problems == last + healed
        assert sum(len(re.findall(r"\d+(?=,| and| is| are)", p.partition(": ")[2])) for p in healed) <= torn

    assert len(kills) == 200
    assert any(found for _, _, found, _ in kills)
    assert any("incomplete" in p for *_, problems in kills for p in problems)


def test_two_writers_at_once_spoil_nothing(tmp_path):
    child("together", str(tmp_path), "60")
    events, problems = Store(tmp_path).history()

    assert problems == []
    for writer in "01":
        assert [e.seed for e in events if e.source == writer] == list(range(60))
    assert len(list((tmp_path / "attempts").iterdir())) == 1


def test_a_line_cut_anywhere_is_said_and_costs_no_other(store, file):
    line = event(1).to_line().encode()
    for cut in (*range(1, 20), *range(20, len(line) - 20, 7), *range(len(line) - 20, len(line))):
        file.write_bytes(event(0).to_line().encode() + b"\n" + line[:cut])
        events, problems = store.history()
        assert events == [event(0)]
        assert problems == [
            f"{FILE}: the last line, 2, is incomplete, as after a kill or on a full disk; it is kept and not counted."
        ]
        store.append(event(2))
        events, problems = store.history()
        assert events == [event(0), event(2)]
        assert problems == [f"{FILE}: line 2 is damaged (it is not JSON); kept and not counted."]
        assert file.read_bytes().split(b"\n")[1] == line[:cut]


def test_a_last_line_that_lacks_only_its_end_counts(store, file):
    file.write_bytes(event(0).to_line().encode())
    store.append(event(1))

    assert store.history() == ([event(0), event(1)], [])


def test_a_line_glued_behind_a_torn_one_counts(store, file):
    torn, whole = event(0).to_line().encode()[:90], [event(n).to_line().encode() for n in (1, 2)]
    file.write_bytes(torn + whole[0] + whole[1] + b"\n" + b"xx" + whole[0] + b"\n")
    events, problems = store.history()

    assert events == [event(1), event(1), event(2)]
    assert problems == [f"{FILE}: lines 1, 2 are damaged (it is not JSON); kept and not counted."]


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_whatever_lies_between_the_lines_they_are_all_read(tmp_path_factory, kinds, data):
    store = Store(tmp_path_factory.mktemp("any"))
    store.attempts.mkdir()
    text, whole = b"", []
    for n, kind in enumerate(kinds):
        line = event(n).to_line().encode()
        if kind == 0:
            line = line[: data.draw(st.integers(1, len(line) - 1))]
        elif kind == 1:
            line = data.draw(st.binary(min_size=1).filter(lambda b: b.strip() and b"\n" not in b))
        else:
            whole.append(event(n))
        text += line + b"\n" * (kind % 2 == 0 or data.draw(st.booleans()) or kind == 3)
    (store.attempts / "any.jsonl").write_bytes(text)
    events, problems = store.history()

    assert events == whole
    assert bool(problems) == any(kind < 2 for kind in kinds)
    assert (store.attempts / "any.jsonl").read_bytes() == text


# -- disks that refuse -----------------------------------------------------------------------------------------------

REFUSED = {
    errno.ENOSPC: "(the disk is full); make room and run it again.",
    errno.EDQUOT: "(your disk quota is used up); make room and run it again.",
    errno.EROFS: "(the file system is read-only); make it writable, or name another folder with --records DIR.",
    errno.EACCES: "(you may not write there); make it writable, or name another folder with --records DIR.",
    errno.EIO: "(Input/output error); mend that and run it again.",
}


@pytest.mark.parametrize("number", REFUSED, ids=errno.errorcode.get)
def test_a_refusing_disk_is_one_sentence(store, monkeypatch, number):
    store.append(event(0))
    refuse(monkeypatch, number)
    with pytest.raises(StoreError) as caught:
        store.append(event(1))

    assert str(caught.value) == f"Not recorded: {FILE} cannot be written {REFUSED[number]}"
    assert isinstance(caught.value, KataError)
    assert store.history() == ([event(0)], [])


def test_a_disk_that_took_half_a_line_says_so_and_the_next_line_is_whole(store, monkeypatch):
    store.append(event(0))
    refuse(monkeypatch, errno.ENOSPC, after=50)
    with pytest.raises(StoreError, match=r"the disk is full"):
        store.append(event(1))
    events, problems = store.history()
    assert events == [event(0)]
    assert any("incomplete" in p for p in problems)

    monkeypatch.setattr(store_module, "_write", os.write)
    store.append(event(2))

    assert store.history()[0] == [event(0), event(2)]


def test_a_disk_that_finds_room_at_the_second_try_gets_the_whole_line(store, monkeypatch):
    writes = iter([50, None])
    monkeypatch.setattr(store_module, "_write", lambda fd, data: os.write(fd, data[: next(writes)]))
    store.append(event(0))

    assert store.history()[0] == [event(0)]


def test_a_disk_that_refuses_only_when_the_data_must_reach_it_is_said(store, monkeypatch):
    def fsync(fd: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(store_module.os, "fsync", fsync)
    with pytest.raises(StoreError, match="your disk quota is used up"):
        store.append(event(0))


def test_a_disk_that_refuses_the_clones_name_is_said(tmp_path, monkeypatch):
    refuse(monkeypatch, errno.ENOSPC)
    with pytest.raises(StoreError) as caught:
        Store(tmp_path / "records").append(event(0))

    assert str(caught.value) == (
        "Not recorded: records/.clone-id cannot be written (the disk is full); make room and run it again."
    )
    assert list((tmp_path / "records").iterdir()) == []


def test_a_file_in_place_of_a_folder_is_said(store):
    store.attempts.write_text("not a folder", encoding="ascii")
    with pytest.raises(
        StoreError, match=r"^Not recorded: records/attempts/\w+\.jsonl cannot be written \(File exists\)"
    ):
        store.append(event(0))

    assert store.history() == ([], ["records/attempts cannot be read (Not a directory); its history is not counted."])


def test_a_full_tmpfs_loses_nothing_that_was_written(tmp_path):
    place = tmp_path / "records"
    place.mkdir()
    with mounted(place, "-t", "tmpfs", "-o", "size=64k", "none"):
        store, written = Store(place), []
        filler = place / "filler"
        filler.write_bytes(b"x" * 8192)
        with pytest.raises(StoreError) as caught:
            for n in range(1000):
                written.append(store.append(event(n)))
        assert str(caught.value).endswith("cannot be written (the disk is full); make room and run it again.")
        events, problems = store.history()
        assert len(written) > 20
        assert events == written
        assert len(problems) <= 1

        with pytest.raises(StoreError, match=r"^No reset, for kernel.py could not be put aside: records/kept"):
            keep = tmp_path / "05_nf4" / "kernel.py"
            keep.parent.mkdir()
            keep.write_bytes(b"#" * 100_000)
            store.keep(keep, "reset")
        assert not list(place.glob("kept/*")) and not list(place.glob("kept/.*"))

        filler.unlink()
        written.append(store.append(event(5000)))
        assert store.history()[0] == written
        assert len(store.history()[1]) <= 1


def test_read_only_records_are_read_and_said(tmp_path):
    git_dir(tmp_path / ".git")
    store = Store(tmp_path / "records")
    store.append(event(0))
    with mounted(store.folder, "--bind", str(store.folder)):
        done = subprocess.run(["mount", "-o", "remount,ro,bind", str(store.folder)], capture_output=True)
        if done.returncode:
            pytest.skip("a bind mount cannot be made read-only here")
        with pytest.raises(StoreError, match=r"the file system is read-only"):
            store.append(event(1))
        (tmp_path / "kernel.py").write_text("mine", encoding="ascii")
        with pytest.raises(StoreError, match=r"^No update, for kernel.py .*the file system is read-only"):
            store.keep(tmp_path / "kernel.py", "update", slug="05_nf4")

        assert Store(store.folder).history() == ([event(0)], [])


# -- what lies there -------------------------------------------------------------------------------------------------


def test_damaged_lines_are_said_by_number_and_kept(store, file):
    good = [event(n).to_line() for n in range(8)]
    edited = good[3].replace('"wrong"', '"pass"')
    file.write_text("\n".join([good[0], "", edited, good[1], "<<<<<<< HEAD", good[2]]) + "\n", encoding="ascii")
    before = file.read_bytes()
    events, problems = store.history()

    assert events == [event(0), event(1), event(2)]
    assert problems == [f"{FILE}: lines 3, 5 are damaged (the first: its digest does not match); kept and not counted."]
    assert file.read_bytes() == before

    file.write_text(edited + "\n", encoding="ascii")
    assert store.history()[1] == [f"{FILE}: line 1 is damaged (its digest does not match); kept and not counted."]


def test_many_damaged_lines_are_one_sentence(store, file):
    file.write_text("nonsense\n" * 40, encoding="ascii")

    assert store.history()[1] == [
        f"{FILE}: lines 1, 2, 3, 4, 5 and 35 more are damaged (it is not JSON); kept and not counted."
    ]


def test_lines_of_a_newer_schema_are_kept_and_said(store, file):
    newer = '{"schema":2,"kind":"dance","moment":17}\n'
    file.write_text(event(0).to_line() + "\n" + newer, encoding="ascii")
    store.append(event(1))
    events, problems = store.history()

    assert events == [event(0), event(1)]
    assert problems == [
        f"{FILE}: line 2 is from a newer Kernel Kata (this one reads schema 1); kept and not counted until "
        "`nox -s update`."
    ]
    assert newer in file.read_text()


def test_what_cannot_be_read_is_said_and_the_rest_is(store, file):
    store.append(event(0))
    (store.attempts / "folder.jsonl").mkdir()
    (store.attempts / "notes.txt").write_text("mine", encoding="ascii")

    assert store.history() == (
        [event(0)],
        ["records/attempts/folder.jsonl cannot be read (Is a directory); its history is not counted."],
    )


def test_lines_with_carriage_returns_count(store, file):
    file.write_bytes(b"".join(event(n).to_line().encode() + b"\r\n" for n in range(3)))

    assert store.history() == ([event(n) for n in range(3)], [])


# -- several clones --------------------------------------------------------------------------------------------------


def test_the_files_of_two_clones_are_merged_by_time(tmp_path):
    one, two = (Store(git_dir(tmp_path / n / ".git").parent / "records") for n in "ab")
    for n in range(6):
        (one, two)[n % 2].append(event(n))
    for path in two.attempts.iterdir():
        shutil.copy(path, one.attempts)

    assert one.history() == ([event(n) for n in range(6)], [])


def test_a_file_that_was_copied_under_another_name_counts_once(store, file):
    frozen = [event(0, kind="hint"), event(0, kind="hint"), event(1)]  # two hints at one moment of a coarse clock
    for one in frozen:
        store.append(one)
    assert store.history()[0] == frozen
    (store.attempts / "copy.jsonl").write_bytes(file.read_bytes() + event(2).to_line().encode() + b"\n")

    assert store.history() == ([*frozen, event(2)], [])


def test_git_merges_two_clones_without_a_conflict(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("merging is git's part, and there is no git here")

    def git(where: Path, *args: str) -> None:
        who = ["-c", "user.name=Toy", "-c", "user.email=toy@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, "-C", str(where), *args], check=True, capture_output=True)

    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    git(first, "init", "--quiet", "--initial-branch=main")
    shutil.copy(ROOT / ".gitattributes", first)
    (first / "records").mkdir()
    shutil.copy(ROOT / "records" / ".gitignore", first / "records")
    Store(first / "records").append(event(0))
    git(first, "add", ".")
    git(first, "commit", "--quiet", "-m", "first")
    git(tmp_path, "clone", "--quiet", str(first), "second")

    def work(where: Path, *minutes: int) -> None:
        for n in minutes:
            Store(where / "records").append(event(n))
        git(where, "add", ".")
        git(where, "commit", "--quiet", "-m", "work")

    work(second, 1, 4)
    work(first, 2, 3)
    git(second, "pull", "--quiet", "--no-rebase", "--no-edit")
    assert Store(second / "records").history() == ([event(n) for n in range(5)], [])
    assert len(list((second / "records" / "attempts").iterdir())) == 2

    # two branches of one clone do write the same file; git keeps the lines of both
    git(second, "checkout", "--quiet", "-b", "other")
    work(second, 5)
    git(second, "checkout", "--quiet", "main")
    work(second, 6)
    git(second, "merge", "--quiet", "--no-edit", "other")
    assert Store(second / "records").history() == ([event(n) for n in range(7)], [])


def test_a_renumbered_kata_keeps_its_history(store):
    store.append(event(0, slug="05_nf4", verdict="pass"))
    store.append(event(9, slug="06_nf4", kind="reset"))
    store.append(event(10, slug="06_nf4", verdict="pass"))
    standing = standings(store.history()[0], ["nf4"], START)["nf4"]

    assert (standing.passes, standing.streak, standing.attempts) == (2, 2, 2)


def test_ten_thousand_attempts_are_read_well_under_a_second(store, file):
    ids = [f"kata{n}" for n in range(20)]
    versions = {"python": "3.11.7", "torch": "2.13.0+cpu", "triton": "3.9.0", "harness": "0.1.0"}
    speed = {"kind": "modelled", "share": 0.93, "gate": 0.7, "band": 0.1, "binds": "DRAM", "counts": {"bytes": 10**9}}
    common = {"speed": speed, "versions": versions, "source": "a" * 64, "reason": "r" * 80, "device": "cpu"}
    words = ("pass", "wrong", "slow")
    lines = (event(n, id=ids[n % 20], verdict=words[n % 3], **common).to_line() for n in range(10_000))
    file.write_text("\n".join(lines) + "\n", encoding="ascii")

    took = []
    for _ in range(3):
        before = time.process_time()  # what else runs on this machine is not ours
        events, problems = store.history()
        found = standings(events, ids, START + timedelta(minutes=10_000))
        days = day_streak(events, date(2026, 3, 8), UTC)
        took.append(time.process_time() - before)
        if took[-1] < 0.8:
            break

    assert (len(events), problems, days) == (10_000, [], 8)
    assert sum(s.attempts for s in found.values()) == 10_000
    assert min(took) < 0.8
    before = time.process_time()
    store.append(event(10_000))
    assert time.process_time() - before < 0.1  # whatever the length of the history


# -- kept files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(tmp_path) -> Path:
    """A learner's file."""
    path = tmp_path / "exercises" / "05_nf4" / "kernel.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine\r\n\xff")
    return path


def test_a_kept_file_is_the_same_bytes_under_a_name_that_says_what_it_is(store, kernel):
    kept = store.keep(kernel, "reset", at=START)

    assert kept == store.kept / "20260301T093000Z_05_nf4_e9591e2f.py"
    assert kept.read_bytes() == kernel.read_bytes() == b"mine\r\n\xff"
    assert store.keep(kernel, "reset", at=START) == kept
    assert store.keep(kernel, "update", at=START + timedelta(seconds=1), slug="06_nf4").name.startswith(
        "20260301T093001Z_06_nf4_"
    )
    assert len(list(store.kept.iterdir())) == 2


def test_a_kept_file_is_never_overwritten(store, kernel):
    first = store.keep(kernel, "reset", at=START)
    first.write_text("somebody edited it", encoding="ascii")
    second = store.keep(kernel, "reset", at=START)

    assert second.name == "20260301T093000Z_05_nf4_e9591e2f_2.py"
    assert second.read_bytes() == kernel.read_bytes()
    assert first.read_text() == "somebody edited it"


@pytest.mark.parametrize("after", [0, 3])
def test_a_file_that_cannot_be_kept_leaves_nothing_behind(store, kernel, monkeypatch, after):
    writes = []

    def write(fd: int, data: bytes) -> int:
        writes.append(len(data))
        if after and len(writes) == 1:
            return os.write(fd, bytes(data)[:after])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module, "_write", write)
    with pytest.raises(StoreError) as caught:
        store.keep(kernel, "reset", at=START)

    assert str(caught.value) == (
        "No reset, for kernel.py could not be put aside: records/kept/20260301T093000Z_05_nf4_e9591e2f.py cannot be "
        "written (the disk is full); make room and run it again."
    )
    assert list(store.kept.iterdir()) == []


def test_a_file_that_is_not_there_cannot_be_kept(store, tmp_path):
    with pytest.raises(StoreError) as caught:
        store.keep(tmp_path / "kernel.py", "reset")

    assert str(caught.value) == (
        f"No reset: {tmp_path}/kernel.py cannot be read (No such file or directory), so it cannot be put aside."
    )
