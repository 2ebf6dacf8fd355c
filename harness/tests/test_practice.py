"""The solutions stay behind the branch, and nothing of the learner's is lost: real git, in clones of a toy course."""

import os
import re
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.branches import git as git_module
from harness.branches import practice
from harness.branches.git import Git
from harness.branches.practice import pristine_stub
from harness.errors import GitError
from harness.tests.clones import ATTEMPTS, IDENTITY, World, assert_no_solutions, each_kill, settle, stub

ROOT = Path(__file__).resolve().parents[2]
SAID = (
    "\nYou are on practice: the course without solutions/, with your kernels and records as you left them.\n"
    "The branch reference has all of it, one git command away: this is a gate of courtesy.\n"
    "When the course has news: nox -s update\n"
)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A course and a clone of it, made once."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, folder / "home")
        yield World.make(folder / "world").pack()


@pytest.fixture
def world(template, tmp_path, monkeypatch):
    """The test's own copy."""
    if shutil.which("git") is None:
        pytest.skip("these are tests of what git does; there is no git here")
    settle(monkeypatch, tmp_path / "home")
    return template.copy(tmp_path / "world")


def refused(world, capsys, where=None) -> str:
    """Run practice, which must say one thing and change nothing; return that."""
    repo = where or world.me
    before = snapshot(repo.root)
    assert practice.main([], repo.root) == 1
    out, err = capsys.readouterr()
    assert snapshot(repo.root) == before
    assert all(line.startswith("$ ") for line in out.splitlines())
    return err


def snapshot(root: Path) -> dict[str, bytes]:
    """Return everything that a learner could lose: the work tree, and which commit each branch is at."""
    tree = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and ".git" not in p.parts}
    refs = subprocess.run(["git", "for-each-ref"], cwd=root, capture_output=True, check=False).stdout
    return {**tree, "refs": refs, "HEAD": (root / ".git" / "HEAD").read_bytes() if (root / ".git").is_dir() else b""}


# -- the first time ----------------------------------------------------------------------------------------------------


def test_reference_has_everything_and_practice_all_but_the_solutions(world, capsys):
    me = world.me

    assert practice.main([], me.root) == 0

    out, err = capsys.readouterr()
    assert out.endswith(SAID) and err == ""
    assert me.at("reference") == me.at("main") == world.up.at("main")
    assert me.git("branch", "--show-current") == "practice"
    full = me.files("reference")
    assert me.files("practice") == {path: blob for path, blob in full.items() if not path.startswith("solutions/")}
    assert me.status() == []
    assert_no_solutions(me)


def test_every_git_command_is_shown_as_it_was_run(world, capsys, monkeypatch):
    ran = []
    execute = git_module._execute
    monkeypatch.setattr(git_module, "_execute", lambda args, **kw: ran.append(args) or execute(args, **kw))

    practice.main([], world.me.root)

    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    assert len(shown) == len(ran) > 10
    assert "$ git checkout --quiet --no-track -b practice " + world.me.at("practice") in shown
    index = "$ GIT_INDEX_FILE=.git/kata-index git "
    assert f"{index}read-tree {world.me.at('main')}" in shown
    assert f"{index}-c core.sparseCheckout=false rm -r -f -q --cached --ignore-unmatch solutions" in shown


def test_work_that_is_not_committed_comes_along_as_it_is(world):
    me = world.me
    mine, staged = me.solve("05_nf4"), me.solve("01_blocks")
    me.git("add", "exercises/01_blocks/kernel.py")
    me.write(ATTEMPTS, '{"id": "nf4"}\n')
    me.write("notes.md", "mine\n")
    before = me.status()

    assert practice.main([], me.root) == 0

    assert me.status() == before
    assert (me.read("exercises/05_nf4/kernel.py"), me.read("exercises/01_blocks/kernel.py")) == (mine, staged)
    assert me.read(ATTEMPTS) == '{"id": "nf4"}\n'
    assert_no_solutions(me)


def test_work_that_is_committed_comes_along_and_stays_out_of_reference(world):
    me = world.me
    mine = me.solve("05_nf4")
    me.write(ATTEMPTS, "1\n")
    on_main = me.commit("I solved it")
    me.write(ATTEMPTS, "1\n2\n")

    assert practice.main([], me.root) == 0

    assert me.read("exercises/05_nf4/kernel.py") == mine
    assert me.read(ATTEMPTS) == "1\n2\n"
    assert me.status() == [f"M {ATTEMPTS}"]
    assert me.at("main") == on_main
    assert me.at("reference") == me.at("origin/main") == world.up.at("main")
    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4")
    assert me.git("log", "--format=%an: %s", "-1") == "Kernel Kata: Your work so far, from main"
    assert_no_solutions(me)


def test_a_clone_that_fetched_but_did_not_merge_practises_what_it_has(world):
    me, base = world.me, world.me.at("main")
    world.up.stub("05_nf4", 2)
    world.up.commit()
    me.git("fetch", "--quiet")

    assert practice.main([], me.root) == 0

    assert me.at("reference") == base
    assert me.read("exercises/05_nf4/kernel.py") == stub("05_nf4")


def test_the_learners_name_signs_the_learners_work_and_ours_the_chain(world):
    me = world.me
    me.git("config", "user.name", "Lea")
    me.git("config", "user.email", "lea@example.org")
    me.solve("05_nf4")
    subprocess.run(["git", "commit", "--quiet", "--all", "-m", "mine"], cwd=me.root, check=True)

    assert practice.main([], me.root) == 0

    assert me.git("log", "--format=%an <%ae>").splitlines() == [
        "Lea <lea@example.org>",
        "Kernel Kata <kata@kernel-kata.invalid>",
    ]


def test_the_chain_is_the_same_in_every_clone(world):
    other = world.clone("other")
    practice.main([], world.me.root)
    practice.main([], other.root)

    assert other.at("practice") == world.me.at("practice")


def test_a_linked_work_tree_is_a_clone_too(world):
    world.me.git("worktree", "add", "--quiet", "-b", "desk", "../desk")
    desk = type(world.me)(world.folder / "desk")
    desk.solve("05_nf4")

    assert practice.main([], desk.root) == 0

    assert desk.status() == ["M exercises/05_nf4/kernel.py"]
    assert_no_solutions(desk)
    assert world.me.status() == []


def test_a_sparse_checkout_that_hid_the_solutions_can_practise(world):
    me = world.me
    (me.root / ".git" / "info").mkdir(exist_ok=True)
    me.git("status")  # the copy's files are newer than its index says; sparse-checkout would leave them
    me.git("sparse-checkout", "set", "--no-cone", "/*", "!/solutions/")
    assert not me.has("solutions")

    assert practice.main([], me.root) == 0

    assert me.at("reference") == me.at("main") and me.status() == []
    assert_no_solutions(me)


# -- and then ----------------------------------------------------------------------------------------------------------


def test_a_second_run_changes_nothing(world, capsys):
    world.me.solve("05_nf4")
    practice.main([], world.me.root)
    before = snapshot(world.me.root)
    capsys.readouterr()

    assert practice.main([], world.me.root) == 0

    assert capsys.readouterr().out.endswith(SAID)
    assert snapshot(world.me.root) == before


def test_from_another_branch_it_goes_back(world):
    me = world.me
    practice.main([], me.root)
    me.solve("05_nf4")
    work = me.commit()
    me.git("switch", "--quiet", "main")
    assert me.has("solutions")

    assert practice.main([], me.root) == 0

    assert me.at("HEAD") == work
    assert me.git("branch", "--show-current") == "practice"
    assert_no_solutions(me)


@pytest.mark.parametrize("name", ["main", "origin/main", "reference"])
def test_git_refuses_to_merge_what_has_solutions(world, name):
    me = world.me
    me.git("config", "user.name", "Lea")
    me.git("config", "user.email", "lea@example.org")
    practice.main([], me.root)
    world.up.kata("05_nf4", 2)
    world.up.commit()
    me.git("fetch", "--quiet")

    done = subprocess.run(["git", "merge", name], cwd=me.root, capture_output=True, text=True, check=False)

    assert done.returncode != 0 and "unrelated histories" in done.stderr
    assert me.status() == []
    assert_no_solutions(me)


def test_caches_of_solutions_go_with_them(world):
    me = world.me
    for path in ("solutions/05_nf4/__pycache__/kernel.cpython-311.pyc", "solutions/05_nf4/mutants/__pycache__/a.pyc"):
        me.write(path, "compiled: the_line_that_solves_it")

    assert practice.main([], me.root) == 0

    assert_no_solutions(me)
    assert not me.has("records/kept")


def test_a_learners_file_among_the_solutions_is_kept_and_a_copy_of_one_is_not(world, capsys):
    me = world.me
    me.write("solutions/05_nf4/mine.py", "an idea of mine\n")
    shutil.copy(me.root / "solutions/05_nf4/kernel.py", me.root / "solutions/05_nf4/copy.py")

    assert practice.main([], me.root) == 0

    (kept,) = (me.root / "records" / "kept").iterdir()
    assert re.fullmatch(r"\d{8}T\d{6}Z_05_nf4_[0-9a-f]{8}\.py", kept.name)
    assert kept.read_text() == "an idea of mine\n"
    assert f"Kept: solutions/05_nf4/mine.py is now records/kept/{kept.name}\n" in capsys.readouterr().out
    assert_no_solutions(me)


def test_a_link_named_solutions_is_not_followed(world):
    me = world.me
    practice.main([], me.root)
    world.clone("elsewhere")
    (me.root / "solutions").symlink_to(world.folder / "elsewhere" / "solutions")

    assert practice.main([], me.root) == 0

    assert (world.folder / "elsewhere" / "solutions" / "05_nf4" / "kernel.py").exists()


def test_solutions_that_a_learner_committed_go_behind_the_branch_again(world):
    me = world.me
    practice.main([], me.root)
    me.git("checkout", "main", "--", "solutions")
    me.commit("Now they are here")

    assert practice.main([], me.root) == 0

    assert_no_solutions(me, history=False)
    assert me.status() == [] and not me.has("records/kept")


def test_a_file_is_kept_once_however_often_a_run_is_stopped(world, monkeypatch):
    me = world.me
    clone = practice.look(me.root, "practice", None)
    me.solve("05_nf4")
    for minute in (1, 2):
        monkeypatch.setattr("harness.store.now", lambda minute=minute: datetime(2030, 1, 1, 0, minute, tzinfo=UTC))
        practice.keep(clone, me.root / "exercises/05_nf4/kernel.py", "05_nf4")

    assert [path.name[:16] for path in (me.root / "records" / "kept").iterdir()] == ["20300101T000100Z"]


def test_commits_on_a_branch_named_reference_are_set_aside(world, capsys):
    me = world.me
    me.git("switch", "--quiet", "-c", "reference")
    me.write("notes.md", "mine\n")
    mine = me.commit()
    me.git("switch", "--quiet", "main")

    assert practice.main([], me.root) == 0

    assert me.at("reference") == world.up.at("main")
    assert me.at(f"reference-{mine[:7]}") == mine
    assert f"they are on reference-{mine[:7]}.\n" in capsys.readouterr().out


def test_another_clone_of_the_learners_goes_on_with_their_branch(world):
    me, second = world.me, None
    practice.main([], me.root)
    mine = me.solve("05_nf4")
    me.commit()
    subprocess.run(["git", "clone", "--quiet", "--bare", world.up.root, world.folder / "fork"], check=True)
    me.git("push", "--quiet", str(world.folder / "fork"), "practice")
    second = world.clone("second", of="fork")

    assert practice.main([], second.root) == 0

    assert second.at("practice") == me.at("practice")
    assert second.at("reference") == me.at("reference")
    assert second.read("exercises/05_nf4/kernel.py") == mine
    assert_no_solutions(second)


def test_a_repository_without_a_remote_can_practise(world):
    me = world.me
    me.git("remote", "remove", "origin")
    mine = me.solve("05_nf4")
    work = me.commit()

    assert practice.main([], me.root) == 0

    assert me.at("reference") == work
    assert me.read("exercises/05_nf4/kernel.py") == mine
    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4")
    assert_no_solutions(me)


def test_a_run_that_is_killed_between_any_two_git_commands_is_finished_by_the_next(world, monkeypatch, tmp_path):
    world.me.write("solutions/05_nf4/__pycache__/kernel.pyc", "the_line_that_solves_it")
    mine = world.me.solve("05_nf4")
    world.me.write(ATTEMPTS, "1\n")
    world.me.commit()
    world.me.solve("07_softmax")
    status = world.me.status()
    kills = 0
    for copy in each_kill(monkeypatch, world, tmp_path, practice.main):
        me, kills = copy.me, kills + 1
        assert (me.read("exercises/05_nf4/kernel.py"), me.read(ATTEMPTS), me.status()) == (mine, "1\n", status)
        assert practice.main([], me.root) == 0
        assert me.git("branch", "--show-current") == "practice"
        assert me.at("reference") == world.up.at("main")
        assert (me.read("exercises/05_nf4/kernel.py"), me.read(ATTEMPTS), me.status()) == (mine, "1\n", status)
        assert_no_solutions(me)
    assert kills >= 5


# -- what it says when it cannot ---------------------------------------------------------------------------------------


def test_changes_outside_of_the_learners_files(world, capsys):
    world.me.write("README.md", "mine\n")
    world.me.solve("05_nf4")

    assert refused(world, capsys) == (
        "Changed and not committed: README.md; only exercises/*/kernel.py and records/ may be. Commit, or put aside "
        "with git stash, then run nox -s practice again.\n"
    )


def test_many_changes_are_counted(world, capsys):
    for slug in ("01_blocks", "05_nf4", "07_softmax"):
        world.me.write(f"exercises/{slug}/README.md", "mine\n")
        world.me.write(f"solutions/{slug}/kernel.py", "mine\n")
    world.me.git("add", "--all")

    assert refused(world, capsys).startswith(
        "Changed and not committed: exercises/01_blocks/README.md, exercises/05_nf4/README.md, "
        "exercises/07_softmax/README.md and 3 more; only "
    )


def test_no_branch_is_checked_out(world, capsys):
    world.me.git("checkout", "--quiet", "--detach")

    assert refused(world, capsys) == (
        f"No branch is checked out (HEAD is detached at {world.me.at('HEAD')[:7]}): git switch main, or git switch "
        "-c NAME to keep commits made here, then run nox -s practice again.\n"
    )


def test_a_shallow_clone_and_what_it_says_to_do(world, capsys):
    world.up.write("README.md", "# Two commits\n")
    world.up.commit()
    shallow = world.clone("shallow", "--depth=1")

    assert refused(world, capsys, shallow) == (
        "This clone is shallow, and merging needs the history that it lacks: git fetch --unshallow, then run nox -s "
        "practice again.\n"
    )
    shallow.git("fetch", "--quiet", "--unshallow")
    assert practice.main([], shallow.root) == 0
    assert_no_solutions(shallow)


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside-another-repository"])
def test_a_zip(world, capsys, inside):
    folder = world.me.root / "unpacked" if inside else world.folder / "unpacked"
    shutil.copytree(world.up.root, folder, ignore=shutil.ignore_patterns(".git"))

    assert refused(world, capsys, type(world.me)(folder)) == (
        f"{folder} is no git clone (a ZIP has no history), and nox -s practice needs one: git clone the course, copy "
        "your exercises/*/kernel.py and records/ into the clone, and run it there.\n"
    )


def test_a_zip_that_became_a_repository_without_a_commit(world, capsys):
    folder = world.folder / "unpacked"
    shutil.copytree(world.up.root, folder, ignore=shutil.ignore_patterns(".git"))
    subprocess.run(["git", "init", "--quiet", folder], check=True)

    assert refused(world, capsys, type(world.me)(folder)) == (
        "This repository has no commit yet: git add -A, git commit, then run nox -s practice again.\n"
    )


def test_a_merge_under_way(world, capsys):
    me = world.me
    me.git("switch", "--quiet", "-c", "side")
    me.solve("05_nf4", "one")
    me.commit()
    me.git("switch", "--quiet", "main")
    me.solve("05_nf4", "two")
    me.commit()
    subprocess.run(["git", *IDENTITY, "merge", "side"], cwd=me.root, capture_output=True, check=False)

    assert refused(world, capsys) == (
        "A merge is under way here: end it with git merge --continue or git merge --abort, then run nox -s practice "
        "again.\n"
    )


def test_a_conflict_that_a_stash_left(world, capsys):
    me = world.me
    me.solve("05_nf4", "one")
    me.git("stash")
    me.solve("05_nf4", "two")
    me.commit()
    subprocess.run(["git", "stash", "pop"], cwd=me.root, capture_output=True, check=False)

    assert refused(world, capsys) == (
        "Conflicts not settled yet: exercises/05_nf4/kernel.py. Edit, git add what you want to keep, then run nox -s "
        "practice again.\n"
    )


def test_a_branch_practice_of_somebody_elses(world, capsys):
    world.me.git("branch", "practice")

    assert refused(world, capsys) == (
        "The branch practice was not made by nox -s practice: git branch -m practice NAME, then run it again.\n"
    )


def test_a_change_on_main_that_practice_would_overwrite(world, capsys):
    me = world.me
    practice.main([], me.root)
    me.solve("05_nf4", "on practice")
    me.commit()
    me.git("switch", "--quiet", "main")
    me.solve("05_nf4", "on main")
    capsys.readouterr()

    assert refused(world, capsys) == (
        "In the way, and not committed: exercises/05_nf4/kernel.py. Nothing of yours was changed; commit what is yours "
        "or move it away, then run nox -s practice again.\n"
    )


def test_a_folder_of_another_user(world, capsys, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    assert practice.main([], world.me.root) == 1
    assert capsys.readouterr().err == (
        f"{world.me.root} belongs to another user, so git does not trust it. If you do: git config --global --add "
        f"safe.directory {world.me.root}, then run nox -s practice again.\n"
    )


def test_no_git(world, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(world.folder / "empty"))

    assert practice.main([], world.me.root) == 1
    assert capsys.readouterr().err == "git was not found; install it (apt install git), then run this again.\n"
    assert pristine_stub(world.me.root, "05_nf4") is None


def test_a_broken_repository_is_one_sentence(world, capsys):
    (world.me.root / ".git" / "HEAD").write_text("nonsense\n")

    assert practice.main([], world.me.root) == 1
    assert capsys.readouterr().err == (
        f"git cannot use {world.me.root}: not a git repository (or any of the parent directories): .git.\n"
    )


def test_a_command_that_fails_gives_gits_reason(world, capsys):
    (world.me.root / ".git" / "index.lock").touch()

    assert practice.main([], world.me.root) == 1
    assert capsys.readouterr().err.startswith("git checkout failed: Unable to create '")
    (world.me.root / ".git" / "index.lock").unlink()
    assert practice.main([], world.me.root) == 0


def test_an_argument_and_help(world, capsys):
    assert practice.main(["05_nf4"], world.me.root) == 1
    assert capsys.readouterr().out == "usage: nox -s practice; it takes no arguments. Got '05_nf4'.\n"
    assert practice.main(["--help"], world.me.root) == 0
    assert capsys.readouterr().out == "usage: nox -s practice; it takes no arguments.\n"


def test_ctrl_c_and_a_full_disk_are_one_sentence(world, capsys, monkeypatch):
    for error, said in (
        (KeyboardInterrupt(), "\nStopped. Nothing is lost; nox -s practice goes on from here.\n"),
        (
            OSError(28, "No space left on device", "a/file"),
            "a/file: No space left on device. Mend that, then run nox -s ",
        ),
    ):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(git_module, "_execute", fail)
        assert practice.main([], world.me.root) == 1
        assert capsys.readouterr().err.startswith(said)


def test_ctrl_c_waits_for_the_command_that_runs(world):
    nap = world.folder / "git-nap"  # `git nap`; not an alias, for a shell would let the signal through
    nap.write_text(
        f"#!{sys.executable}\nimport pathlib, time\n"
        "pathlib.Path('begun').touch(), time.sleep(0.3), pathlib.Path('done').touch()\n"
    )
    nap.chmod(0o755)
    code = (  # the handler is set: whoever is started in the background of a shell has SIGINT ignored
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from harness.branches.git import Git; from pathlib import Path\n"
        "try: print(Git(Path(), None).run('nap'))\n"
        "except KeyboardInterrupt: print('stopped', Path('done').exists())"
    )
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{world.folder}:{os.environ['PATH']}"}
    child = subprocess.Popen(command, cwd=world.me.root, stdout=-1, text=True, env=env, start_new_session=True)
    while not world.me.has("begun"):
        assert child.poll() is None
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does it: to all processes

    assert child.communicate(timeout=20)[0] == "stopped True\n"


# -- git.py ------------------------------------------------------------------------------------------------------------


def test_a_callers_git_variables_do_not_lead_elsewhere(world, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(world.up.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(world.folder / "index"))
    git = Git(world.me.root, None)

    assert Path(git.run("rev-parse", "--absolute-git-dir").strip()) == world.me.root / ".git"
    assert git.run("ls-files", "README.md") == "README.md\n"


def test_an_error_names_the_command_and_what_to_do(world):
    with pytest.raises(GitError) as caught:
        Git(world.me.root, None).run("-c", "core.pager=cat", "switch", "nowhere", then="Go elsewhere.")

    assert str(caught.value) == "git switch failed: invalid reference: nowhere. Go elsewhere."


def test_bytes_that_are_no_text_survive_git(world):
    git = Git(world.me.root, None)
    blob = git.run("hash-object", "-w", "--stdin", stdin="a\udcff\r\n").strip()

    assert git.text(blob) == "a\udcff\r\n"
    assert git_module.run("cat-file", "-s", blob, root=world.me.root, show=None) == "4\n"


# -- the pristine stub -------------------------------------------------------------------------------------------------


def test_the_stub_is_pristine_before_and_after_practice(world):
    me = world.me
    me.solve("05_nf4")
    me.commit()
    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4")
    practice.main([], me.root)

    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4")
    assert pristine_stub(me.root, "99_none") is None


def test_the_stub_without_a_remote_is_the_one_whose_digest_is_known(world):
    me = world.me
    me.solve("05_nf4")
    me.commit()
    me.solve("05_nf4", "better")
    me.commit()
    me.git("remote", "remove", "origin")

    assert pristine_stub(me.root, "05_nf4") == stub("05_nf4")


def test_a_zip_has_no_pristine_stub(world):
    shutil.rmtree(world.me.root / ".git")

    assert pristine_stub(world.me.root, "05_nf4") is None


def test_the_pristine_stub_prints_nothing(world, capfd):
    pristine_stub(world.me.root, "05_nf4")

    assert capfd.readouterr() == ("", "")


# -- as it is typed ----------------------------------------------------------------------------------------------------


def test_as_a_command_in_a_checkout_with_its_own_harness(world):
    up = world.up
    shutil.copytree(
        ROOT / "harness",
        up.root / "harness",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", "*.json", "tests"),
    )
    up.commit("With a harness")
    me = world.clone("fresh")
    mine = me.solve("05_nf4")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONDONTWRITEBYTECODE": "1"}

    def run(name: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", f"harness.branches.{name}"]
        return subprocess.run(command, cwd=me.root, env=env, capture_output=True, text=True, check=False)

    first = run("practice")
    assert (first.returncode, first.stderr) == (0, ""), first
    up.stub("05_nf4", 2)
    up.commit()
    second = run("update")
    assert (second.returncode, second.stderr) == (0, ""), second
    assert "+    version = 2\n" in second.stdout
    assert me.read("exercises/05_nf4/kernel.py") == mine
    me.git("checkout", "--quiet", "--detach")
    third = run("practice")
    assert third.returncode == 1
    assert third.stderr.startswith("No branch is checked out") and "Traceback" not in third.stderr
    me.git("switch", "--quiet", "practice")
    assert_no_solutions(me)
