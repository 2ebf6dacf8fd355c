"""The gate on the reference, what is recorded, and what stands side by side; a fake grader keeps it fast."""

import json
import re
import subprocess
import sys

import pytest

from harness.loop import compare_solutions as compare
from harness.record import Attempt
from harness.store import Store
from harness.tests import toys

MINE = toys.kernel(
    "x = tl.load(x_ptr + offs, mask=mask)\ntl.store(out_ptr + offs, tl.where(mask, x * 2, 0), mask=mask)"
)
# the reference passes; anything else is wrong
FAKE = """
import json, sys
verdicts, options = sys.argv[1], sys.argv[2:]
fine = "--submission" in options
counts = {"bytes": 100 if fine else 250, "least_bytes": 100, "sectors": 8, "least_sectors": 4, "launches": 1,
          "programs": 9, "bench_programs": 1234}
kata = {"verdict": "pass" if fine else "wrong", "reason": "" if fine else "values differ\\nand so on",
        "tests": {"a": "passed", "b": "passed" if fine else "failed"},
        "speed": {"kind": "modelled", "share": 0.5, "binds": None, "counts": counts}, "findings": [],
        "not_checked": [], "seed": 1, "whole_suite": True}
if "--break" in options and fine:
    print("broken"), sys.exit(3)
json.dump({"katas": {"01_double": kata}}, open(verdicts, "w"))
open(verdicts + ".options", "w").write(" ".join(options))
"""
asked: list[list[str]] = []


def fake(kata, verdicts, options):
    """Return the fake grader's command, and note the options."""
    asked.append(list(options))
    return [sys.executable, "-I", "-S", "-c", FAKE, str(verdicts), *options]


@pytest.fixture
def root(tmp_path):
    asked.clear()
    toys.write_course(tmp_path / "course", {"01_double": {"kernel.py": MINE}})
    return tmp_path / "course"


def run(root, capsys, *args):
    """Return the exit status and what one call prints on both streams."""
    status = compare.main(["01_double", *args], root, fake)
    out = capsys.readouterr()
    return status, out.out, out.err


def add(root, **event):
    """Append an event to the records."""
    Store(root / "records").append(Attempt(id="double", slug="01_double", **event))


def kinds(root):
    """Return the kinds of all records."""
    found = (root / "records" / "attempts").glob("*.jsonl")
    return [json.loads(line)["kind"] for f in found for line in f.read_text().splitlines()]


HOW = (
    " How to proceed:\n"
    "  pytest exercises/01_double           grade it: the first failure says what is wrong, and where\n"
    "  nox -s hint -- 01_double             one more hint; {} seen in this round\n"
    "  nox -s compare -- 01_double --peek   open it now: that is recorded, and your streak ends\n"
)


def test_before_any_attempt_it_refuses(root, capsys):
    text = "01_double: compare opens after a pass, and there is none yet." + HOW.format("none")

    assert run(root, capsys) == (1, text, "")
    assert asked == []
    assert not (root / "records").exists()


def test_before_a_pass_it_refuses_and_says_how_to_proceed(root, capsys):
    add(root, verdict="error")
    add(root, kind="hint", help={"hints": 1})
    add(root, verdict="wrong")
    text = "01_double: compare opens after a pass, and there is none yet (2 attempts; the last verdict: wrong)."

    assert run(root, capsys) == (1, text + HOW.format(1), "")


def test_a_pass_of_another_kata_opens_nothing(root, capsys):
    Store(root / "records").append(Attempt(id="other", slug="02_other", verdict="pass"))

    assert run(root, capsys)[0] == 1


def test_a_part_of_the_suite_that_passed_opens_nothing(root, capsys):
    add(root, verdict="pass", whole=False)

    assert run(root, capsys)[0] == 1


def test_a_reset_closes_it_until_the_next_pass(root, capsys):
    add(root, verdict="pass")
    add(root, kind="reset")
    text = "01_double: compare opens after a pass, and this round, which began with your reset, has none yet."

    assert run(root, capsys) == (1, text + HOW.format("none"), "")
    add(root, verdict="pass")
    assert run(root, capsys)[0] == 0


def test_after_a_pass_both_stand_side_by_side(root, capsys):
    add(root, verdict="pass")
    status, out, err = run(root, capsys, "--gpu", "A100")

    assert (status, err) == (0, "")
    assert out == (
        "--- yours: exercises/01_double/kernel.py\n"
        "+++ the reference\n"
        "@@ -7,8 +7,8 @@\n"
        " def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
        "     offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "     mask = offs < n\n"
        "-    x = tl.load(x_ptr + offs, mask=mask)\n"
        "-    tl.store(out_ptr + offs, tl.where(mask, x * 2, 0), mask=mask)\n"
        "+    x = tl.load(x_ptr + offs, mask=mask, other=0)\n"
        "+    tl.store(out_ptr + offs, x * 2, mask=mask)\n"
        " \n"
        " def double(x):\n"
        "     x = x.contiguous()\n"
        "\n"
        "The reference does, and yours does not:\n"
        "  - other= on masked loads, so that masked lanes hold a known value: 1 of 1\n"
        "\n"
        "Yours does, and the reference does not:\n"
        "  - tl.where, a choice per lane\n"
        "\n"
        "Grading both …\n"
        "\n"
        "                               yours   the reference\n"
        "verdict                        wrong   pass\n"
        "tests passed                   1 of 2  2 of 2\n"
        "share of the limit (modelled)  50%     50%\n"
        "bytes, of the least            2.50x   1.00x\n"
        "sectors, of the least          2.00x   2.00x\n"
        "launches                       1       1\n"
        "programs                       9       9\n"
        "programs, bench shape          1,234   1,234\n"
        "\n"
        "yours is wrong: values differ\n"
    )
    assert kinds(root) == ["attempt"]


def test_both_are_graded_on_the_same_inputs_and_recorded_nowhere(root, capsys):
    add(root, verdict="pass")
    run(root, capsys, "--gpu", "A100")
    mine, theirs = asked

    assert mine[:2] == theirs[:2] == ["--no-record", "--kata-seed"]
    assert mine[2] == theirs[2]
    assert mine[3:] == ["--gpu", "A100"]
    assert theirs[3:] == ["--gpu", "A100", "--submission", str(root / "solutions" / "01_double" / "kernel.py")]


def test_a_peek_is_recorded_and_then_it_opens(root, capsys):
    add(root, verdict="wrong")
    status, out, err = run(root, capsys, "--peek")

    assert (status, err) == (0, "")
    assert out.startswith(
        "01_double: a peek, recorded. This round can still end in a pass; a new streak begins with the next.\n"
        "\n--- yours: exercises/01_double/kernel.py\n"
    )
    assert kinds(root) == ["attempt", "peek"]
    assert run(root, capsys)[0] == 1, "a peek opens it once"


def test_after_a_pass_peek_is_no_peek(root, capsys):
    add(root, verdict="pass")

    assert run(root, capsys, "--peek")[0] == 0
    assert kinds(root) == ["attempt"]


def test_a_peek_that_cannot_be_recorded_is_said(root, capsys):
    (root / "records").mkdir()
    (root / "records" / "attempts").write_text("a file where the folder should be")
    status, _, err = run(root, capsys, "--peek")

    assert status == 0
    assert "\nNot recorded: " in err


def test_the_same_file_is_said_to_be_the_same(root, capsys):
    (root / "exercises" / "01_double" / "kernel.py").write_text(toys.SOLUTION)
    add(root, verdict="pass")

    assert run(root, capsys)[1].startswith(
        "Yours and the reference are the same, line by line.\n\n"
        "Both are built from the same constructs; the difference is in the details above, if there is one.\n"
    )


def test_a_syntax_error_leaves_the_diff_and_the_verdicts(root, capsys):
    (root / "exercises" / "01_double" / "kernel.py").write_text("def double(x:\n")
    add(root, verdict="pass")

    out = run(root, capsys)[1]
    assert "\n-def double(x:\n" in out
    assert "\nYours cannot be read as Python (line 1: '(' was never closed), so only its text is compared.\n" in out
    assert "\nyours is wrong: values differ\n" in out


def test_a_grader_that_fails_is_one_paragraph(root, capsys):
    add(root, verdict="pass")
    status, _, err = run(root, capsys, "--break")

    assert status == 1
    assert err == ("No verdict on the reference; `nox -s doctor` looks for the cause. What was said last:\nbroken\n")


def test_a_missing_or_unreadable_file_is_one_sentence(root, capsys):
    file = root / "exercises" / "01_double" / "kernel.py"
    file.write_bytes(b"# \xff")
    assert run(root, capsys, "--peek") == (
        1, "", "exercises/01_double/kernel.py is not UTF-8 at byte 2; save it as UTF-8.\n",
    )  # fmt: skip
    file.unlink()

    assert run(root, capsys, "--peek") == (
        1,
        "",
        "exercises/01_double/kernel.py cannot be read: No such file or directory; `nox -s reset` brings a blank one.\n",
    )
    assert not (root / "records").exists(), "nothing was shown, so nothing is recorded"


# -- the reference behind its branch -----------------------------------------------------------------------------------


def git(root, *words):
    """Run git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def test_without_solutions_it_comes_from_the_branch_and_never_into_the_tree(root, capsys):
    git(root, "init", "-q")
    git(root, "add", "."), git(root, "commit", "-qm", "all"), git(root, "branch", "reference")
    git(root, "rm", "-rq", "solutions"), git(root, "commit", "-qm", "practice")
    before = {p for p in root.rglob("*") if ".git" not in p.parts}
    status, out, err = run(root, capsys, "--peek")

    assert (status, err) == (0, "")
    assert "$ git show reference:solutions/01_double/kernel.py\n" in out
    assert "\n+    x = tl.load(x_ptr + offs, mask=mask, other=0)\n" in out
    new = {str(p.relative_to(root)) for p in root.rglob("*") if ".git" not in p.parts and p not in before}
    assert all(name.startswith("records") for name in new), new
    shown = re.search(r"--submission (\S+)", " ".join(asked[1]))[1]
    assert not shown.startswith(str(root))
    assert not (root.parent / shown).exists(), "the copy is gone again"


def test_a_renumbered_kata_is_found_on_the_branch_by_its_id(root, capsys):
    git(root, "init", "-q")
    git(root, "mv", "-k", "x", "y"), git(root, "add", ".")
    (root / "solutions" / "01_double").rename(root / "solutions" / "07_double")
    git(root, "add", "."), git(root, "commit", "-qm", "all"), git(root, "branch", "reference")
    git(root, "rm", "-rq", "solutions")

    assert run(root, capsys, "--peek")[0] == 0


def test_without_solutions_and_branch_it_says_so(root, capsys):
    git(root, "init", "-q")
    git(root, "add", "."), git(root, "rm", "-rqf", "solutions"), git(root, "commit", "-qm", "practice")
    status, out, err = run(root, capsys, "--peek")

    assert status == 1
    assert err.startswith(
        "The reference of 01_double is neither in solutions/ nor on the branch 'reference', which `nox -s practice` "
        "makes. git ls-tree failed: "
    )
    assert err.count("\n") == 1
    assert not (root / "records").exists(), "nothing was shown, so nothing is recorded"


def test_a_folder_for_temporary_files_inside_the_checkout_is_refused(root, capsys, monkeypatch):
    git(root, "init", "-q")
    git(root, "add", "."), git(root, "commit", "-qm", "all"), git(root, "branch", "reference")
    git(root, "rm", "-rq", "solutions")
    (root / "tmp").mkdir()
    monkeypatch.setattr(compare.tempfile, "tempdir", str(root / "tmp"))

    assert run(root, capsys, "--peek")[2] == (
        f"TMPDIR={root}/tmp lies in the checkout, where no solution may be; choose another folder.\n"
    )
    assert list((root / "tmp").iterdir()) == []


def test_for_real_both_are_graded(tmp_path, capsys, monkeypatch):
    toys.write_course(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(toys.ROOT))
    status = compare.main(["01", "--peek"], tmp_path)
    out = capsys.readouterr().out

    assert status == 0, out
    assert re.search(r"^verdict +todo +pass$", out, re.MULTILINE), out
