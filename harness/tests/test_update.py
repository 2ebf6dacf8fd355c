"""The course moves on and the learner's work stays theirs: with real git, in clones of a toy course."""

import re
import shutil
import subprocess

import pytest

from harness.branches import git as git_module
from harness.branches import practice, update
from harness.branches.git import Entry
from harness.branches.merge import clashing, merge
from harness.branches.practice import pristine_stub
from harness.tests.clones import ATTEMPTS, Repo, World, assert_no_solutions, each_kill, readme, settle, stub

KERNEL = "exercises/05_nf4/kernel.py"
README = "exercises/05_nf4/README.md"


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """A course and a clone of it, made once: of a learner who never ran practice, and of one who did."""
    folder = tmp_path_factory.mktemp("templates")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, folder / "home")
        plain = World.make(folder / "main").pack()
        practising = plain.copy(folder / "practice")
        assert practice.main([], practising.me.root) == 0
        yield {"main": plain, "practice": practising}


@pytest.fixture
def world(request, templates, tmp_path, monkeypatch):
    """The test's own copy: of the learner who ran practice, if not asked for otherwise."""
    if shutil.which("git") is None:
        pytest.skip("these are tests of what git does; there is no git here")
    settle(monkeypatch, tmp_path / "home")
    return templates[getattr(request, "param", "practice")].copy(tmp_path / "world")


both = pytest.mark.parametrize("world", ["practice", "main"], indirect=True)
on_main = pytest.mark.parametrize("world", ["main"], indirect=True)


def practises(repo: Repo) -> bool:
    """Return whether this learner ran practice."""
    return repo.git("branch", "--show-current") == "practice"


def updated(world: World, capsys, repo: Repo | None = None) -> str:
    """Run update, which must succeed and leave a whole tree; return what it printed but for the commands."""
    repo = repo or world.me
    capsys.readouterr()
    assert update.main([], repo.root) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err == ""
    whole(world, repo)
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("$ "))


def whole(world: World, repo: Repo) -> None:
    """Fail unless nothing is half merged, and what is tracked is what the learner has not touched plus their files."""
    assert not [mark for mark in ("MERGE_HEAD", "index.lock", "kata-index") if (repo.root / ".git" / mark).exists()]
    assert not [
        line for line in repo.status() if line[:2] != "??" and "kernel.py" not in line and "records/" not in line
    ]
    if practises(repo):
        assert repo.at("reference") == world.up.at("main")
        assert_no_solutions(repo)
    folders = {path.name for path in (repo.root / "exercises").iterdir()}
    assert folders >= {path.name for path in (world.up.root / "exercises").iterdir()}


def refused(world: World, capsys, repo: Repo | None = None) -> str:
    """Run update, which must say one thing and change no file; return that."""
    repo = repo or world.me
    before = tree(repo)
    capsys.readouterr()
    assert update.main([], repo.root) == 1
    assert tree(repo) == before
    return capsys.readouterr().err


def tree(repo: Repo) -> dict[str, bytes]:
    """Return the files of the work tree."""
    files = (path for path in repo.root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(repo.root)): path.read_bytes() for path in files}


def kept(repo: Repo) -> list[str]:
    """Return the texts in records/kept/."""
    return sorted(path.read_text() for path in (repo.root / "records" / "kept").glob("*"))


# -- what upstream can do ----------------------------------------------------------------------------------------------


@both
def test_an_untouched_stub_follows_upstream(world, capsys):
    world.up.stub("05_nf4", 2)
    new = world.up.commit("A better stub")

    out = updated(world, capsys)

    assert world.me.read(KERNEL) == stub("05_nf4", 2)
    assert world.me.status() == []
    date = world.up.git("log", "-1", "--format=%cd", "--date=short")
    assert out == (
        f"Upstream is origin/main, at {new[:7]} of {date}: A better stub\n\n"
        f"- new stub, for yours was untouched: {KERNEL}\n"
        "You have all of origin/main now. Next: nox -s grade\n"
    )
    assert world.me.git("rev-list", "--merges", "HEAD") == ""  # nothing of the learner's: no merge is needed


@both
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "uncommitted"])
def test_an_edited_kernel_is_kept_and_upstreams_change_is_shown(world, capsys, committed):
    mine = world.me.solve("05_nf4")
    if committed:
        world.me.commit()
    world.up.stub("05_nf4", 2)
    world.up.commit()

    out = updated(world, capsys)

    assert world.me.read(KERNEL) == mine
    assert pristine_stub(world.me.root, "05_nf4") == stub("05_nf4", 2)
    told = out.partition(f"\nYours is kept: {KERNEL}. What upstream changed in the stub:\n")[2]
    assert told.startswith(f"diff --git a/{KERNEL} b/{KERNEL}\n")
    assert "\n def nf4(x):\n-    version = 1\n+    version = 2\n     raise NotImplementedError\n" in told
    assert f"- yours is kept: {KERNEL}; upstream changed the stub\n" in told
    assert (f"Committed, for upstream changed these katas: {KERNEL}\n" in out) is not committed
    assert world.me.status() == []
    assert (
        world.me.git("log", "-1", "--format=%B").splitlines()[2]
        == f"yours is kept: {KERNEL}; upstream changed the stub"
    )


def test_a_kernel_is_kept_whole_even_where_no_line_clashes(world, capsys):
    mine = stub("05_nf4") + "\n\n# mine, far below\n"
    world.me.write(KERNEL, mine)
    world.up.write(KERNEL, "# a new first line\n\n\n" + stub("05_nf4"))
    world.up.commit()

    updated(world, capsys)

    assert world.me.read(KERNEL) == mine


def test_a_kernel_that_upstream_left_alone_stays_uncommitted(world, capsys):
    mine = world.me.solve("05_nf4")
    world.me.git("add", KERNEL)
    other = world.me.solve("07_softmax")
    before = world.me.status()
    world.up.stub("01_blocks", 2)
    world.up.commit()

    updated(world, capsys)

    assert world.me.status() == before == [f"M  {KERNEL}", " M exercises/07_softmax/kernel.py"] or before[0][0] == "M"
    assert (world.me.read(KERNEL), world.me.read("exercises/07_softmax/kernel.py")) == (mine, other)
    assert world.me.read("exercises/01_blocks/kernel.py") == stub("01_blocks", 2)


def test_a_kernel_that_the_learner_removed_comes_back_with_a_new_stub(world, capsys):
    (world.me.root / KERNEL).unlink()
    world.up.stub("05_nf4", 2)
    world.up.commit()

    updated(world, capsys)

    assert world.me.read(KERNEL) == stub("05_nf4", 2)


@both
def test_a_new_kata(world, capsys):
    world.up.kata("21_formats")
    world.up.commit()

    assert "- new: 21_formats\n" in updated(world, capsys)
    assert world.me.read("exercises/21_formats/kernel.py") == stub("21_formats")
    assert world.me.has("solutions/21_formats") is not practises(world.me)


@both
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "uncommitted"])
def test_a_renumbered_kata_takes_the_learners_files_along(world, capsys, committed):
    me = world.me
    mine = me.solve("05_nf4")
    me.write(ATTEMPTS, '{"id": "nf4"}\n')
    if committed:
        me.commit()
    me.write("exercises/05_nf4/notes.md", "mine\n")
    me.write("exercises/05_nf4/__pycache__/kernel.pyc", "x")
    world.up.renumber("05_nf4", "06_nf4")
    world.up.stub("06_nf4", 2)
    world.up.commit()

    out = updated(world, capsys)

    assert me.read("exercises/06_nf4/kernel.py") == mine
    assert me.read("exercises/06_nf4/notes.md") == "mine\n"
    assert not me.has("exercises/05_nf4")
    assert me.read(ATTEMPTS) == '{"id": "nf4"}\n'
    assert pristine_stub(me.root, "06_nf4") == stub("06_nf4", 2)
    assert "- 05_nf4 is 06_nf4 now; your files and records went along\n" in out
    assert "+    version = 2\n" in out
    assert "Moved along: exercises/05_nf4/notes.md is now exercises/06_nf4/notes.md\n" in out
    assert not me.has("records/kept")


def test_two_katas_that_change_places(world, capsys):
    me = world.me
    first, second = me.solve("05_nf4", "nf4"), me.solve("07_softmax", "softmax")
    world.up.renumber("05_nf4", "99_x")
    world.up.renumber("07_softmax", "05_softmax")
    world.up.renumber("99_x", "07_nf4")
    world.up.commit()

    updated(world, capsys)

    assert me.read("exercises/07_nf4/kernel.py") == first
    assert me.read("exercises/05_softmax/kernel.py") == second
    assert not me.has("exercises/05_nf4") and not me.has("exercises/07_softmax")


def test_a_place_that_the_learner_took_is_not_overwritten(world, capsys):
    me = world.me
    first = me.solve("05_nf4", "where it was")
    me.write("exercises/06_nf4/kernel.py", "# where it will be\n")
    me.commit()
    world.up.renumber("05_nf4", "06_nf4")
    world.up.commit()

    updated(world, capsys)

    assert me.read("exercises/06_nf4/kernel.py") == "# where it will be\n"
    assert kept(me) == [first]
    assert not me.has("exercises/05_nf4")


@both
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "uncommitted"])
def test_a_deleted_kata_leaves_the_learners_files_in_records(world, capsys, committed):
    me = world.me
    mine = me.solve("05_nf4")
    if committed:
        me.write(README, "my own words\n")
        me.write("exercises/05_nf4/plan.md", "added and committed\n")
        me.commit()
    me.write("exercises/05_nf4/notes.md", "never added\n")
    me.write("exercises/05_nf4/__pycache__/kernel.pyc", "x")
    me.write(ATTEMPTS, '{"id": "nf4"}\n')
    world.up.git(
        "rm", "-r", "-q", "exercises/05_nf4", "solutions/05_nf4", "exercises/07_softmax", "solutions/07_softmax"
    )
    world.up.commit()

    out = updated(world, capsys)

    assert kept(me) == sorted(
        [mine, "never added\n", *(["my own words\n", "added and committed\n"] if committed else [])]
    )
    (name,) = [path.name for path in (me.root / "records" / "kept").glob("*.py")]
    assert re.fullmatch(r"\d{8}T\d{6}Z_05_nf4_[0-9a-f]{8}\.py", name)
    assert f"Kept: {KERNEL} is now records/kept/{name}\n" in out
    assert "- gone: 05_nf4; its records stay\n- gone: 07_softmax; its records stay\n" in out
    assert not me.has("exercises/05_nf4") and not me.has("exercises/07_softmax")
    assert me.read(ATTEMPTS) == '{"id": "nf4"}\n'


@both
def test_changed_solutions_stay_behind_the_branch(world, capsys):
    me, before = world.me, world.me.at("HEAD")
    world.up.write("solutions/05_nf4/kernel.py", "# the_line_that_solves_it, better\n")
    world.up.write("solutions/05_nf4/fast.py", "# the_line_that_solves_it, faster\n")
    world.up.commit()

    out = updated(world, capsys)

    if practises(me):
        assert me.at("HEAD") == before
        assert out.endswith("\nNothing new: you have all of origin/main.\n")
        assert "faster" in me.git("show", "reference:solutions/05_nf4/fast.py")
        world.up.stub("05_nf4", 2)
        world.up.commit()
        updated(world, capsys)
        assert me.git("branch", "--list", "reference-*") == ""
    else:
        assert me.has("solutions/05_nf4/fast.py")


def test_solutions_that_came_into_practice_go_with_the_next_update(world, capsys):
    me = world.me
    me.git("checkout", "main", "--", "solutions")
    me.commit("Now they are here")
    me.write("solutions/05_nf4/__pycache__/kernel.pyc", "x")
    world.up.kata("21_formats")
    world.up.commit()

    assert update.main([], me.root) == 0, capsys.readouterr().err

    assert_no_solutions(me, history=False)
    assert me.has("exercises/21_formats") and me.status() == []
    assert not me.has("records/kept")


@both
def test_upstream_rewrote_its_history(world, capsys):
    me = world.me
    mine = me.solve("05_nf4")
    me.commit()
    world.up.stub("05_nf4", 2)
    world.up.stub("01_blocks", 2)
    world.up.git("commit", "--quiet", "--all", "--amend", "-m", "The course, anew")
    if not practises(me):
        assert refused(world, capsys) == (
            "main and origin/main share no commit: clone the course anew, and copy your exercises/*/kernel.py and "
            "records/ into the clone.\n"
        )
        return

    updated(world, capsys)

    assert me.read(KERNEL) == mine
    assert me.read("exercises/01_blocks/kernel.py") == stub("01_blocks", 2)


# -- what the learner can have done ------------------------------------------------------------------------------------


def test_a_readme_that_both_changed_is_joined_line_by_line(world, capsys):
    world.me.write(README, readme("nf4", middle="three, and a note of mine"))
    world.me.commit()
    world.up.write(README, readme("nf4", version=2))
    world.up.commit()

    out = updated(world, capsys)

    assert world.me.read(README) == readme("nf4", version=2, middle="three, and a note of mine")
    assert f"- joined: {README}, your lines and upstream's\n" in out


@both
def test_a_readme_that_clashes_stays_the_learners(world, capsys):
    mine = readme("nf4", middle="three, mine")
    world.me.write(README, mine)
    world.me.commit()
    theirs = readme("nf4", version=2, middle="three, theirs")
    world.up.write(README, theirs)
    world.up.stub("01_blocks", 2)
    world.up.commit()

    out = updated(world, capsys)

    assert world.me.read(README) == mine
    assert world.me.status() == []
    assert world.me.read("exercises/01_blocks/kernel.py") == stub("01_blocks", 2)
    branch = "reference" if practises(world.me) else "origin/main"
    see = f"git show {branch}:{README}"
    assert f"- yours is kept: {README}; upstream changed the same lines. Upstream's: {see}\n" in out
    assert world.me.git(*see.split()[1:]) == theirs.strip()


def test_one_side_removed_what_the_other_changed(world, capsys):
    me, up = world.me, world.up
    me.git("rm", "-q", README)
    me.write("README.md", "# Mine\n")
    me.commit()
    up.git("rm", "-q", "README.md")
    up.write(README, readme("nf4", version=2))
    up.commit()

    out = updated(world, capsys)

    assert not me.has(README) and me.read("README.md") == "# Mine\n"
    assert f"- {README} stays removed, as you left it; upstream's: git show " in out
    assert "- yours is kept: README.md; upstream removed it\n" in out


def test_a_file_that_is_no_text_stays_the_learners(world, capsys):
    for repo, data in ((world.me, b"\0mine\xff"), (world.up, b"\0theirs\xfe")):
        (repo.root / "README.md").write_bytes(data)
        repo.commit()

    updated(world, capsys)

    assert (world.me.root / "README.md").read_bytes() == b"\0mine\xff"


@both
def test_a_kata_of_the_learners_own_stays(world, capsys):
    me = world.me
    me.kata("30_mine")
    if practises(me):
        shutil.rmtree(me.root / "solutions")
    me.git("checkout", "--", "harness")
    me.write("exercises/31_draft/kernel.py", "# a draft\n")
    world.up.kata("21_formats")
    world.up.commit()

    updated(world, capsys)

    assert me.has("exercises/30_mine/kernel.py") and me.has("exercises/31_draft/kernel.py")
    assert "?? exercises/30_mine/kernel.py" in me.status()


def test_a_file_in_the_way_that_git_does_not_know(world, capsys):
    world.me.write("exercises/21_formats/kernel.py", "# mine\n")
    world.up.kata("21_formats")
    world.up.commit()

    assert refused(world, capsys) == (
        "In the way, and not committed: exercises/21_formats/kernel.py. Nothing of yours was changed; commit what is "
        "yours or move it away, then run nox -s update again.\n"
    )
    world.me.commit("Now git knows it")
    out = updated(world, capsys)
    assert world.me.read("exercises/21_formats/kernel.py") == "# mine\n"
    assert "Yours is kept: exercises/21_formats/kernel.py. Upstream's against yours:\n" in out
    assert "-# mine\n+def formats(x):\n" in out


def test_a_change_in_the_way_is_not_stashed_behind_the_learners_back(world, capsys):
    world.me.git("config", "merge.autoStash", "true")
    world.me.write("records/reference/h200.json", '{"mine": 1}\n')
    world.up.write("records/reference/h200.json", '{"new": 1}\n')
    world.up.commit()

    assert refused(world, capsys).startswith("In the way, and not committed: records/reference/h200.json. Nothing of ")


def test_records_that_are_committed_and_changed_again_come_through(world, capsys):
    me = world.me
    me.write(ATTEMPTS, "1\n")
    me.commit()
    me.write(ATTEMPTS, "1\n2\n")
    me.write("records/experiments/one.json", "{}\n")
    world.up.write("records/reference/h200.json", '{"new": 1}\n')
    world.up.commit()

    updated(world, capsys)

    assert me.read(ATTEMPTS) == "1\n2\n"
    assert me.status() == [f"M {ATTEMPTS}", "?? records/experiments/one.json"]
    assert me.read("records/reference/h200.json") == '{"new": 1}\n'


def test_a_branch_off_practice_is_updated_as_practice_is(world, capsys):
    me = world.me
    me.git("switch", "--quiet", "-c", "try-tma")
    mine = me.solve("05_nf4")
    world.up.kata("21_formats")
    world.up.commit()

    updated(world, capsys)

    assert me.git("branch", "--show-current") == "try-tma"
    assert me.read(KERNEL) == mine and me.has("exercises/21_formats/kernel.py")
    assert me.at("reference") == world.up.at("main")
    assert_no_solutions(me)


@on_main
def test_practice_after_updates_on_main(world, capsys):
    me = world.me
    mine = me.solve("05_nf4")
    world.up.stub("05_nf4", 2)
    world.up.commit()
    updated(world, capsys)

    assert practice.main([], me.root) == 0

    assert me.read(KERNEL) == mine
    assert me.at("reference") == world.up.at("main")
    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4", 2)
    assert_no_solutions(me)


def test_two_clones_of_one_learner_meet_without_a_conflict(world, capsys):
    me = world.me
    other = world.copy(world.folder.parent / "laptop").me
    mine = me.solve("05_nf4")
    world.up.stub("05_nf4", 2)
    world.up.kata("21_formats")
    world.up.commit()
    updated(world, capsys)
    other.git("remote", "set-url", "origin", f"file://{world.up.root}")
    theirs = other.solve("01_blocks")
    other.commit()
    updated(world, capsys, other)

    me.git("pull", "--quiet", "--no-rebase", "--no-edit", str(other.root), "practice")

    assert me.read(KERNEL) == mine and me.read("exercises/01_blocks/kernel.py") == theirs
    whole(world, me)
    assert updated(world, capsys).endswith("\nNothing new: you have all of origin/main.\n")


def test_a_chain_that_began_without_a_remote_does_not_take_work_for_a_stub(tmp_path, monkeypatch, capsys):
    settle(monkeypatch, tmp_path / "home")
    world = World.make(tmp_path / "world")
    me = world.me
    me.git("remote", "remove", "origin")
    mine = me.solve("05_nf4")
    me.commit()
    assert practice.main([], me.root) == 0
    world.up.kata("05_nf4", 2)
    world.up.kata("01_blocks", 2)
    world.up.commit()
    assert refused(world, capsys) == (
        "This clone has no remote to update from: git remote add origin ADDRESS, then run nox -s update again.\n"
    )
    me.git("remote", "add", "origin", f"file://{world.up.root}")
    me.git("branch", "-D", "main", "--quiet")

    updated(world, capsys)

    assert me.read(KERNEL) == mine
    assert me.read("exercises/01_blocks/kernel.py") == stub("01_blocks", 2)
    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4", 2)


# -- from where --------------------------------------------------------------------------------------------------------


def test_a_fork_updates_from_the_remote_named_upstream(world, capsys):
    me = world.me
    subprocess.run(["git", "clone", "--quiet", "--bare", world.up.root, world.folder / "fork"], check=True)
    me.git("remote", "rename", "origin", "upstream")
    me.git("remote", "add", "origin", f"file://{world.folder / 'fork'}")
    world.up.kata("21_formats")
    new = world.up.commit("News")

    assert f"Upstream is upstream/main, at {new[:7]} of " in updated(world, capsys)
    assert me.has("exercises/21_formats")


def test_the_default_branch_of_the_remote_is_what_counts(world, capsys):
    me, up = world.me, world.up
    me.git("remote", "rename", "origin", "upstream")
    up.git("branch", "--move", "main", "trunk")
    up.kata("21_formats")
    up.commit()
    assert refused(world, capsys) == (
        "git fetch failed: couldn't find remote ref refs/heads/main. Nothing was changed. Is there a network, and is "
        "upstream/main still the course (git remote set-head upstream --auto)? Then run nox -s update again.\n"
    )
    me.git("fetch", "--quiet", "--prune")
    me.git("remote", "set-head", "upstream", "--auto")
    up.git("branch", "main")

    assert "Upstream is upstream/trunk, at " in updated(world, capsys)
    assert me.has("exercises/21_formats")


def test_a_clone_that_never_fetched_asks_for_the_default_branch(world, capsys):
    me, up = world.me, world.up
    up.git("branch", "--move", "main", "trunk")
    up.git("branch", "main")
    me.git("remote", "remove", "origin")
    me.git("remote", "add", "origin", f"file://{up.root}")

    assert "Upstream is origin/trunk, at " in updated(world, capsys)


def test_no_network_changes_nothing(world, capsys):
    world.me.solve("05_nf4")
    head = world.me.at("HEAD")
    world.up.root.rename(world.folder / "gone")

    message = refused(world, capsys)

    assert message.startswith("git fetch failed: '") and message.count("\n") == 1
    assert message.endswith("Then run nox -s update again.\n")
    assert world.me.at("HEAD") == head


# -- what it says when it cannot ---------------------------------------------------------------------------------------


def test_main_after_practice_is_sent_to_practice(world, capsys):
    world.me.git("switch", "--quiet", "main")

    assert refused(world, capsys) == (
        "You are on main, your work is on practice: nox -s practice, then run nox -s update again.\n"
    )


def test_each_state_that_cannot_be_updated_is_one_sentence(world, capsys):
    me = world.me
    me.write("README.md", "mine\n")
    assert refused(world, capsys).startswith("Changed and not committed: README.md; only ")
    me.git("checkout", "--", "README.md")
    me.git("checkout", "--quiet", "--detach")
    assert refused(world, capsys).startswith("No branch is checked out (HEAD is detached at ")
    me.git("switch", "--quiet", "-")
    world.up.commit("Another")
    shallow = world.clone("shallow", "--depth=1")
    assert refused(world, capsys, shallow).endswith("git fetch --unshallow, then run nox -s update again.\n")
    shutil.rmtree(me.root / ".git")
    assert refused(world, capsys).startswith(
        f"{me.root} is no git clone (a ZIP has no history), and nox -s update needs"
    )


def test_a_learners_file_that_cannot_be_kept_stops_the_update(world, capsys):
    mine = world.me.solve("05_nf4")
    world.me.write("records/kept", "a file where a folder must be\n")
    world.up.git("rm", "-r", "-q", "exercises/05_nf4", "solutions/05_nf4")
    world.up.commit()

    assert refused(world, capsys).startswith("No update, for kernel.py could not be put aside: ")
    assert world.me.read(KERNEL) == mine
    (world.me.root / "records" / "kept").unlink()
    updated(world, capsys)
    assert kept(world.me) == [mine]


# -- again, and half-way -----------------------------------------------------------------------------------------------


def everything(world: World) -> None:
    """Let a learner have work of every kind, and upstream do everything at once."""
    me, up = world.me, world.up
    me.write(README, readme("nf4", middle="three, mine"))
    me.write(ATTEMPTS, "1\n")
    me.commit()
    me.write(ATTEMPTS, "1\n2\n")
    for slug in ("01_blocks", "05_nf4", "07_softmax"):
        me.solve(slug)
    me.write("exercises/05_nf4/notes.md", "mine\n")
    up.stub("01_blocks", 2)
    up.renumber("05_nf4", "06_nf4")
    up.kata("06_nf4", 2)
    up.kata("21_formats")
    up.git("rm", "-r", "-q", "exercises/07_softmax", "solutions/07_softmax")
    up.commit()


def holds(world: World) -> None:
    """Fail unless everything came out as it must."""
    me = world.me
    texts = {path: data.decode() for path, data in tree(me).items()}
    assert texts["exercises/01_blocks/kernel.py"].startswith("# mine")
    assert texts["exercises/06_nf4/kernel.py"].startswith("# mine")
    assert texts["exercises/06_nf4/README.md"] == readme("nf4", version=2, middle="three, mine")
    assert texts["exercises/06_nf4/notes.md"] == "mine\n"
    assert texts["exercises/21_formats/kernel.py"] == stub("21_formats")
    assert texts[ATTEMPTS] == "1\n2\n"
    assert [text.partition("\n")[2] for text in kept(me)] == ["def softmax(x):\n    return x + x\n"]
    assert not me.has("exercises/05_nf4") and not me.has("exercises/07_softmax")
    whole(world, me)


@both
def test_a_second_run_changes_nothing(world, capsys):
    everything(world)
    updated(world, capsys)
    holds(world)
    before, refs = tree(world.me), world.me.git("for-each-ref")

    assert updated(world, capsys).endswith("\nNothing new: you have all of origin/main.\n")

    assert (tree(world.me), world.me.git("for-each-ref")) == (before, refs)


def test_a_run_that_is_killed_between_any_two_git_commands_is_finished_by_the_next(
    world, monkeypatch, tmp_path, capsys
):
    everything(world)
    mine = {p: data for p, data in tree(world.me).items() if re.match(r"exercises/.*/kernel\.py|records/attempts/", p)}
    kills = 0
    for copy in each_kill(monkeypatch, world, tmp_path, update.main):
        kills += 1
        texts = tree(copy.me).values()
        assert [path for path, data in mine.items() if data not in texts] == []
        assert update.main([], copy.me.root) == 0, capsys.readouterr().err
        holds(copy)
    assert kills >= 7


def test_a_week_of_updates(world, capsys):
    me = world.me
    for version in (2, 3, 4):
        mine = me.solve("05_nf4", f"of round {version}")
        world.up.kata("05_nf4", version)
        world.up.stub("01_blocks", version)
        world.up.commit()
        updated(world, capsys)
        assert me.read(KERNEL) == mine
        assert me.read("exercises/01_blocks/kernel.py") == stub("01_blocks", version)
        me.write(KERNEL, pristine_stub(me.root, "05_nf4"))  # a reset: from here on it follows again
        assert me.read(KERNEL) == stub("05_nf4", version)
    world.up.kata("05_nf4", 5)
    world.up.commit()
    updated(world, capsys)
    assert me.read(KERNEL) == stub("05_nf4", 5)


def test_every_git_command_is_shown_as_it_was_run(world, capsys, monkeypatch):
    everything(world)
    ran = []
    execute = git_module._execute
    monkeypatch.setattr(git_module, "_execute", lambda args, **kw: ran.append(args) or execute(args, **kw))

    update.main([], world.me.root)

    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]) == len(ran) > 20


# -- merge.py: trees without git ---------------------------------------------------------------------------------------


def files(**blobs: str) -> dict[str, Entry]:
    """Return a tree of kata 05_nf4: k is its kernel, r its README, t its toml."""
    names = {"k": "kernel.py", "r": "README.md", "t": "exercise.toml"}
    return {f"exercises/05_nf4/{names[key]}": Entry("100644", blob) for key, blob in blobs.items()}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged", "told"),
    [
        ("1", "1", "2", "2", "stubs"),
        ("1", "m", "1", "m", None),
        ("1", "m", "2", "m", "kernels"),
        ("1", "2", "2", "2", None),
        ("1", None, "2", "2", "stubs"),
        (None, "m", "2", "m", "kernels"),
        (None, None, "2", "2", None),
        ("1", "m", None, "m", "both"),
        ("1", "1", None, None, None),
    ],
)
def test_which_kernel_a_merge_takes(base, ours, theirs, merged, told):
    def kata(blob):
        return files(t="t", **({"k": blob} if blob else {}))

    result = merge(kata(base), kata(ours), kata(theirs))

    assert result.tree == kata(merged)
    for name in ("stubs", "kernels", "both", "aside"):
        assert getattr(result, name) == ([KERNEL] if name == told else []), name


def test_a_kernel_of_the_base_that_was_edited_is_the_learners():
    result = merge(files(t="t", k="1"), files(t="t", k="1"), files(t="t", k="2"), edited=lambda path: path == KERNEL)

    assert result.tree == files(t="t", k="1")
    assert result.kernels == [KERNEL]


def test_an_id_that_changes_is_another_kata():
    base = files(t="t", k="1")
    theirs = {path.replace("05_nf4", "05_nf4_quant"): entry for path, entry in base.items()}

    result = merge(base, files(t="t", k="m"), theirs)

    assert (result.gone, result.new, result.moved, result.aside) == (["05_nf4"], ["05_nf4_quant"], {}, [KERNEL])
    assert result.tree == theirs
    assert clashing([KERNEL], base, theirs) == [KERNEL]
