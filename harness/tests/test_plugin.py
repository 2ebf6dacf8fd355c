"""Whole runs of pytest in toy checkouts: what a person types, what comes out, and with which exit status."""

from __future__ import annotations

import json
import os
import re
import shlex

import pytest

from harness.tests.toys import LEAN, REFERENCE, SOLUTION, STUB, SUITE, TOML, grade, python, write_course

SUITE_TESTS = [
    "test_declared_cases[M3-N50]", "test_declared_cases[M5-N70-transposed]", "test_any_size",
    "test_compiles_for_the_gpu", "test_speed",
]  # fmt: skip
WRONG = SOLUTION.replace("x * 2", "x * 3")
LIMITS = (
    "a CPU cannot check measured speed, races inside one program, or what the compiler makes of the arithmetic "
    "(--device cuda does)"
)
# the toy's solution keeps its blocks small, so that small cases have several programs
MANY_PROGRAMS = (
    "double_kernel starts 262,144 programs; starting them takes longer than their work. Give each a larger block."
)


def verdicts(path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Return a run of a solved kata with --verdicts: its result, and the file's content."""
    root = tmp_path_factory.mktemp("solved")
    write_course(root)
    result = grade(root, "exercises/01_double", "--solutions", "--kata-seed", "7", "--verdicts", "v.json")
    return result, verdicts(root / "v.json")


def test_a_solved_kata_exits_with_0_and_one_paragraph(solved):
    result, _ = solved

    assert result.returncode == 0, result.stdout
    lines = [x for x in result.stdout.splitlines() if not re.match(r"    \w[\w ]+ #+ +[\d,.]+ us$", x)]
    assert lines[-5].startswith("  modelled: 100% of the reference's speed (give or take 10 points) on NVIDIA H200: ")
    assert [*lines[-7:-5], *lines[-4:-1]] == [
        "",
        "01_double: pass   (5 of 5 tests passed, seed 7)",
        "  counted: 1.00x the least bytes, 1.00x the least sectors, 1 launch, 262,144 programs at the bench shape",
        f"  note: {MANY_PROGRAMS}",
        f"  not checked: {LIMITS}",
    ]


def test_the_verdicts_file_has_the_agreed_shape(solved):
    _, data = solved

    assert data["schema"] == 1
    assert data["device"] == "cpu, for NVIDIA H200"
    assert list(data["katas"]) == ["01_double"]
    kata = data["katas"]["01_double"]
    assert {k: kata[k] for k in ("verdict", "reason", "findings", "not_checked", "seed")} == {
        "verdict": "pass", "reason": "", "findings": [MANY_PROGRAMS], "not_checked": [LIMITS], "seed": 7,
    }  # fmt: skip
    assert kata["tests"] == dict.fromkeys(SUITE_TESTS, "passed")
    assert {k: kata["speed"][k] for k in ("kind", "share", "gate", "band", "binds")} == {
        "kind": "modelled", "share": 1.0, "gate": 0.7, "band": [0.9, 1.1], "binds": "programs",
    }  # fmt: skip


def test_an_untouched_stub_is_todo_and_starts_no_server(tmp_path):
    write_course(tmp_path, {"01_double": {"kernel.py": STUB + "\n# a comment does not touch it\n"}})
    code = (
        "import sys, pytest, harness.runner.client as c\nc.Server.__init__ = None\nsys.exit(pytest.main(sys.argv[1:]))"
    )
    result = python("-c", code, "exercises", "--verdicts", "v.json", cwd=tmp_path)

    assert result.returncode == 1, result.stdout
    assert "\n01_double: todo\n" in result.stdout
    assert "the stub is untouched: read README.md beside it, then fill in the TODOs." in result.stdout
    assert "exercises/01_double/README.md says what to do" in result.stdout
    assert verdicts(tmp_path / "v.json")["katas"]["01_double"]["verdict"] == "todo"
    assert not (tmp_path / "records").exists()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, server):
    """Return one run over katas that fail in different ways, and one that is right."""
    root = tmp_path_factory.mktemp("mixed")
    write_course(root, {
        "01_syntax": {"kernel.py": SOLUTION.replace("mask = offs < n", "mask = offs <")},
        "02_toml": {"exercise.toml": "title = 3\n", "kernel.py": SOLUTION},
        "03_reference": {"reference.py": REFERENCE.replace("return 2 *", "raise ValueError('oops')\n    return 2 *"), "kernel.py": SOLUTION, "test_kernel.py": LEAN},
        "04_exit": {"kernel.py": "import os\nos._exit(0)\n", "test_kernel.py": LEAN},
        "05_solved": {"kernel.py": SOLUTION, "test_kernel.py": LEAN},
    })  # fmt: skip
    return grade(root, "exercises", "--kata-seed", "7", "--verdicts", "v.json", server=server), verdicts(
        root / "v.json"
    )["katas"]


def test_katas_fail_each_on_its_own(mixed):
    _, katas = mixed
    words = {slug: katas[slug]["verdict"] for slug in ("01_syntax", "04_exit", "05_solved")}

    assert words == {"01_syntax": "error", "04_exit": "error", "05_solved": "pass"}


def test_a_syntax_error_is_one_clear_failure_in_each_test(mixed):
    result, katas = mixed
    texts = re.findall(r"^error: double in exercises/01_syntax/kernel.py.*\n(.*)$", result.stdout, re.MULTILINE)

    assert texts == ["line 9: invalid syntax"] + ["as in test_declared_cases[M3-N50]: line 9: invalid syntax"] * 4
    assert "Traceback" not in result.stdout
    assert katas["01_syntax"]["reason"] == "line 9: invalid syntax\n    mask = offs <"


def test_a_fault_of_ours_exits_with_3_and_says_so(mixed):
    result, katas = mixed

    assert result.returncode == 3
    assert (
        "the harness failed, not your code: 03_reference/reference.py failed on case 'M3-N50': ValueError('oops')."
        in result.stdout
    )
    assert "the harness itself failed (exit 3):" in result.stdout
    assert katas.get("03_reference", {}).get("verdict") != "pass"


def test_a_broken_toml_is_named_in_every_test(mixed):
    result, katas = mixed

    assert "02_toml" not in katas
    assert (
        len(re.findall(r"^the harness failed, not your code: .*02_toml/exercise.toml: ", result.stdout, re.MULTILINE))
        == 4
    )
    assert "AttributeError" not in result.stdout


def test_workers_share_a_server_and_the_controller_folds_one_verdict_a_kata(tmp_path):
    lean = {"test_kernel.py": LEAN}
    write_course(tmp_path, {"01_double": {"kernel.py": SOLUTION} | lean, "02_double": {"kernel.py": WRONG} | lean})
    result = grade(tmp_path, "exercises", "-n", "2", "--kata-seed", "7", "--verdicts", "v.json")
    katas = verdicts(tmp_path / "v.json")["katas"]

    assert result.returncode == 1, result.stdout
    assert {slug: kata["verdict"] for slug, kata in katas.items()} == {"01_double": "pass", "02_double": "wrong"}
    assert set(katas["02_double"]["tests"]) == set(SUITE_TESTS[:2])
    assert result.stdout.count("01_double: pass   (2 of 2 tests passed, seed 7)") == 1
    assert result.stdout.count("02_double: wrong   (") == 1


def test_an_odd_path_in_a_read_only_checkout_from_the_kata_s_folder(tmp_path, server):
    root = tmp_path / "a course"
    course = write_course(root, {"01_double": {"test_kernel.py": LEAN}})
    submission = tmp_path / "meine Lösungen" / "kërnel 1.py"
    submission.parent.mkdir()
    submission.write_text(SOLUTION, encoding="utf-8")
    for folder, _, _ in [*os.walk(root, topdown=False)]:
        os.chmod(folder, 0o555)
    try:
        result = grade(
            course.katas[0].folder, ".", "-p", "no:cacheprovider", "--submission", os.path.relpath(submission, course.katas[0].folder),
            "--verdicts", str(tmp_path / "v.json"), server=server, bound=True,
        )  # fmt: skip
    finally:
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)

    assert result.returncode == 0, result.stdout + result.stderr
    assert verdicts(tmp_path / "v.json")["katas"]["01_double"]["verdict"] == "pass"


def test_a_failure_says_how_to_see_it_again_and_that_repeats_it(tmp_path, server):
    write_course(tmp_path, {"01_double": {"kernel.py": WRONG}})
    first = grade(tmp_path, "exercises/01_double", "-x", "-k", "any_size", "--verdicts", "v.json", server=server)
    again = re.search(r"^see it again: pytest (.*)$", first.stdout, re.MULTILINE)[1]
    second = grade(tmp_path, *shlex.split(again), server=server)
    told = [
        re.search(r"^wrong: double in .*?(?=^see it again)", r.stdout, re.MULTILINE | re.DOTALL)[0]
        for r in (first, second)
    ]

    assert (first.returncode, second.returncode) == (1, 1)
    assert re.search(r"exercises/01_double/test_kernel.py::test_any_size --kata-seed \d+$", again)
    assert told[0] == told[1]
    assert "element of double's result is wrong in case" in told[0]
    assert verdicts(tmp_path / "v.json")["katas"]["01_double"]["verdict"] == "wrong"


def test_a_part_of_a_suite_that_is_right_is_undecided(tmp_path, server):
    write_course(tmp_path)
    test = "exercises/01_double/test_kernel.py::test_declared_cases"
    grade(tmp_path, test, "-k", "M3-N50", "--solutions", "--verdicts", "v.json", server=server)
    kata = verdicts(tmp_path / "v.json")["katas"]["01_double"]

    assert kata["verdict"] == "undecided"
    assert kata["reason"].startswith("only part of the suite ran")
    assert kata["tests"]["test_declared_cases[M3-N50]"] == "passed"


def test_without_speed_a_right_kata_is_undecided_and_exits_with_1(tmp_path, server):
    write_course(tmp_path)
    result = grade(tmp_path, "exercises", "--solutions", "--no-speed", "--verdicts", "v.json", server=server)
    kata = verdicts(tmp_path / "v.json")["katas"]["01_double"]

    assert result.returncode == 1, result.stdout
    assert kata["verdict"] == "undecided"
    assert kata["reason"] == "right, but --no-speed was given; run without it to decide."
    assert [name for name, outcome in kata["tests"].items() if outcome != "passed"] == ["test_speed"]


def test_a_kata_that_ends_early_leaves_nothing_for_the_next(tmp_path, server):
    slow = SOLUTION.replace("x = x.contiguous()", "while x.shape != (3, 50): pass\n    x = x.contiguous()")
    slow = slow.replace("x * 2", "x * TWO").replace(
        "@triton.jit", "TWO = 2\n@triton.jit"
    )  # passes, but does not compile
    toml = TOML.replace("time_limit = 20", "time_limit = 1")
    write_course(
        tmp_path, {"01_double": {"kernel.py": slow, "exercise.toml": toml}, "02_double": {"kernel.py": SOLUTION}}
    )
    grade(tmp_path, "exercises", "--verdicts", "v.json", server=server)
    katas = verdicts(tmp_path / "v.json")["katas"]

    assert katas["01_double"]["verdict"] == "timeout"
    assert (katas["02_double"]["verdict"], katas["02_double"]["reason"]) == ("pass", "")


@pytest.mark.parametrize(("args", "says"), [
    (("--gpu", "H20"), "gpu='H20' is no GPU that this project has facts on. Did you mean \"H200\"?"),
    (("--submission", "nix.py"), "--submission nix.py: there is no such file; give a Python file to grade."),
    (("--submission", "pyproject.toml", "--solutions"), "--submission and --solutions exclude each other; give one of them."),
])  # fmt: skip
def test_a_wrong_option_is_one_sentence_and_exits_with_4(tmp_path, args, says):
    write_course(tmp_path)
    result = grade(tmp_path, "exercises", *args)

    assert result.returncode == 4
    assert says in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_tests_that_belong_to_no_kata_run_as_ever(tmp_path):
    write_course(tmp_path)
    (tmp_path / "test_other.py").write_text("def test_it():\n    assert 1 + 1 == 3\n", encoding="utf-8")
    result = grade(tmp_path, "test_other.py")

    assert result.returncode == 1
    assert "assert (1 + 1) == 3" in result.stdout


def test_fixtures_of_the_katas_say_where_they_belong(tmp_path):
    write_course(tmp_path)
    (tmp_path / "test_other.py").write_text(SUITE, encoding="utf-8")
    result = grade(tmp_path, "test_other.py")

    assert result.returncode not in (0, 5)
    assert "belongs to tests in exercises/NN_name/" in result.stdout + result.stderr


def test_the_plugin_loads_neither_torch_nor_triton(tmp_path):
    code = "import sys, harness.plugin\nprint(sorted({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    result = python("-c", code, cwd=tmp_path)

    assert result.stdout.split("\n")[0] in ("[]", "['numpy']"), result.stdout + result.stderr
