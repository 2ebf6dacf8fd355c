"""exercise.toml: what is valid is kept as it stands, what is not is one sentence that names file and key."""

from __future__ import annotations

import copy
import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.spec import DTYPES, FILLS, LAYOUTS, ROLES, Case, Cost, Gate, Tensor, load_spec, parse_spec
from harness.tests.toys import TOML

PLAIN = tomllib.loads(TOML)
GATE = PLAIN["gate"]


def changed(**changes):
    """Return the toy's tables with some of them replaced; None takes a key out."""
    data = copy.deepcopy(PLAIN) | changes
    return {k: v for k, v in data.items() if v is not None}


def parse(data, slug="01_double"):
    return parse_spec(data, slug, "exercise.toml")


def one_case(**changes):
    case = {"id": "a", "dims": {"M": 3, "N": 5}, "dtype": "float32"} | changes
    return changed(cases=[{k: v for k, v in case.items() if v is not None}])


def test_a_valid_file_is_read_whole():
    spec = parse(PLAIN)

    assert (spec.slug, spec.id, spec.title, spec.entry) == ("01_double", "double", "Double: a toy", "double")
    assert spec.args == (Tensor("x", "T", ("M", "N")),)
    assert str(spec.returns) == "T[M, N]"
    assert spec.dtypes == {"float32": 75, "float16": 75, "bfloat16": 80, "int32": 75}
    assert (spec.ulp, spec.gates[0].cpu, spec.gates[0].gpu, spec.time_limit) == (0.5, 0.7, 0.85, 20)
    assert [c.id for c in spec.cases] == ["M3-N50", "M5-N70-transposed", "traffic", "bench"]
    assert [c.id for c in spec.with_role("small")] == ["M3-N50", "M5-N70-transposed"]
    assert spec.cases[1].layout == {"x": "transposed"}
    assert spec.with_role("bench")[0].model == "Llama 3.1 8B"


def test_further_bench_shapes_may_have_a_gate_of_their_own():
    wide = next(c for c in PLAIN["cases"] if c.get("role") == "bench") | {"id": "wide"}
    data = changed(cases=[*PLAIN["cases"], wide])
    data["gate"]["also"] = [{"case": "wide", "gpu": 0.6, "within": 1.15, "why": "Read once."}]

    assert parse(data).gates == (Gate("bench", 0.7, 0.85), Gate("wide", 0.7, 0.6, 1.15, "Read once."))


def test_what_may_be_left_out_has_a_default():
    spec = parse(changed(time_limit=None))

    assert (spec.time_limit, spec.max_launches, spec.needs, spec.minutes, spec.sources) == (20, 0, (), 0, ())


def test_a_tensor_gives_its_shape_in_numbers():
    spec = parse(changed(args={"x": "uint8[M, 4, N]", "state": "QuantState"}))

    assert spec.args[0].sizes({"M": 2, "N": 0}) == (2, 4, 0)
    assert spec.args[1] == Tensor("state", "QuantState", ())
    with pytest.raises(KeyError):
        spec.args[0].sizes({"M": 2})


@pytest.mark.parametrize(("data", "message"), [
    (changed(title=None), "exercise.toml: 'title' is missing."),
    (changed(title=3), "exercise.toml: title = 3; expected str."),
    (changed(time_limt=3), "exercise.toml: unknown key 'time_limt'. Did you mean \"time_limit\"?"),
    (changed(time_limit=0), "exercise.toml: time_limit = 0; expected a number from 0.1 to 3600."),
    (changed(time_limit=True), "exercise.toml: time_limit = True; expected a number from 0.1 to 3600."),
    (changed(entry="two words"), "exercise.toml: entry = 'two words' is not a Python name."),
    (changed(args={"x": "float31[M]"}), "exercise.toml: x: 'float31' is unknown; expected one of "),
    (changed(args={"x": "T[M"}), "exercise.toml: x = 'T[M'; expected a tensor such as \"T[M, N]\"."),
    (changed(args={"x": 3}), "exercise.toml: x = 3; expected a tensor such as \"T[M, N]\"."),
    (changed(args={"x": "T[M, -1]"}), "exercise.toml: x = 'T[M, -1]'; '-1' is neither a dim name nor a number."),
    (changed(args=[1]), "exercise.toml: args = [1]; expected dict."),
    (changed(returns={}), "exercise.toml: [returns] has 0 lines; expected exactly one tensor."),
    (changed(returns={"a": "T[M]", "b": "T[M]"}), "exercise.toml: [returns] has 2 lines; expected exactly one tensor."),
    (changed(dtypes={"float23": 75}), "exercise.toml: [dtypes]: 'float23' is unknown; expected one of "),
    (changed(dtypes={"float32": 7.5}), "exercise.toml: [dtypes] float32 = 7.5; expected capability x 10, such as 80."),
    (changed(tolerance={"ulp": 1}), "exercise.toml: [tolerance]: 'why' is missing."),
    (changed(tolerance={"why": "x", "ulp": -1}), "exercise.toml: [tolerance]: ulp = -1; expected a number from 0 to 1e+06."),
    (changed(gate=GATE | {"also": [{"case": "traffic"}]}), "exercise.toml: [[gate.also]] number 1: case = 'traffic'; expected a later bench case, of which: none."),
    (changed(gate=GATE | {"also": [{"case": "x", "most": 2}]}), "exercise.toml: [[gate.also]] number 1: unknown key 'most'; expected case, cpu, gpu, within or why."),
    (changed(gate=GATE | {"also": [7]}), "exercise.toml: [[gate.also]] number 1: expected a table, got 7."),
    (changed(gate={"why": "x", "cpu": 0.7}), "exercise.toml: [gate]: gpu = None; expected a number from 0 to 1.2."),
    (changed(cases=[]), "exercise.toml: there are no [[cases]]; a kata without cases proves nothing."),
    (changed(cases=[3]), "exercise.toml: case 1: expected a table, got 3."),
    (changed(cases=[PLAIN["cases"][0]] * 2), "exercise.toml: two cases are called 'M3-N50'; ids are unique."),
    (changed(cases=[PLAIN["cases"][2], PLAIN["cases"][2] | {"id": "b"}]), "exercise.toml: 2 cases have role = 'traffic'; expected at most one."),
    (one_case(id=None), "exercise.toml: case 1: 'id' is missing."),
    (one_case(dims={"M": 3}), "exercise.toml: case 'a': dims lack N, which [args] name."),
    (one_case(dims={"M": 3, "N": -1}), "exercise.toml: case 'a': N = -1; expected a whole number, 0 or more."),
    (one_case(dims={"M": True, "N": 1}), "exercise.toml: case 'a': M = True; expected a whole number, 0 or more."),
    (one_case(dtype="int8"), "exercise.toml: case 'a': dtype: 'int8' is unknown; expected one of float32, float16, bfloat16, int32."),
    (one_case(layout={"x": "transpose"}), "exercise.toml: case 'a': layout of x: 'transpose' is unknown; expected one of "),
    (one_case(role="smal"), "exercise.toml: case 'a': role: 'smal' is unknown; expected one of small, traffic, bench. Did you mean \"small\"?"),
    (one_case(dtyp="float32"), "exercise.toml: case 'a': unknown key 'dtyp'. Did you mean \"dtype\"?"),
])  # fmt: skip
def test_what_cannot_be_is_one_sentence(data, message):
    with pytest.raises(SpecError) as error:
        parse(data)

    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("slug", ["double", "1_double", "01double", "01_Double", "01_", "01_do-uble", ""])
def test_a_folder_has_a_number_and_a_name(slug):
    with pytest.raises(SpecError, match="expected NN_name, such as 05_nf4"):
        parse(PLAIN, slug)


def test_a_file_that_is_missing_or_no_toml_is_one_sentence(tmp_path):
    folder = tmp_path / "01_double"
    folder.mkdir()
    with pytest.raises(
        SpecError, match=r"exercise.toml is missing; every kata has one \(`nox -s new -- 01_double` writes it\)\."
    ):
        load_spec(folder)
    (folder / "exercise.toml").write_text("title = \n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"exercise.toml is not valid TOML: .*line 1"):
        load_spec(folder)
    (folder / "exercise.toml").write_bytes(b"title = '\xff'\n")
    with pytest.raises(SpecError, match="is not valid TOML"):
        load_spec(folder)


# hypothesis: whatever a toml may hold

words = st.sampled_from(["M", "N", "x", "T[M, N]", "float32", "small", "title", ""]) | st.text(max_size=8)
leaves = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)


@given(st.dictionaries(st.sampled_from(sorted(PLAIN)) | words, values, max_size=6))
def test_no_table_raises_anything_but_spec_error(data):
    try:
        parse({**PLAIN, **data})
    except SpecError as error:
        assert str(error)


@given(
    st.dictionaries(
        st.sampled_from(["id", "dims", "dtype", "layout", "fill", "options", "role", "model"]) | words,
        values,
        max_size=5,
    )
)
def test_no_case_raises_anything_but_spec_error(data):
    try:
        parse(changed(cases=[PLAIN["cases"][0] | data]))
    except SpecError as error:
        assert str(error)


names = st.text("abcdefgh", min_size=1, max_size=5)
specs = st.fixed_dictionaries({
    "title": st.text(max_size=9),
    "entry": names,
    "minutes": st.integers(0, 200),
    "needs": st.lists(names, max_size=2),
    "args": st.dictionaries(names, st.sampled_from(["T[M]", "T[M, N]", "uint8[M, 3]", "State", "T[..., N]", "T[]"]), max_size=3),
    "dtypes": st.dictionaries(st.sampled_from(DTYPES), st.integers(10, 200), min_size=1, max_size=3),
})  # fmt: skip


@given(specs, st.data())
def test_what_is_valid_is_kept_as_it_stands(data, more):
    dtypes = st.sampled_from(sorted(data["dtypes"]))
    case = st.fixed_dictionaries({
        "dims": st.fixed_dictionaries({"M": st.integers(0, 9), "N": st.integers(0, 2**40)}),
        "dtype": dtypes,
        "layout": st.dictionaries(names, st.sampled_from(LAYOUTS), max_size=2),
        "fill": st.dictionaries(names, st.sampled_from(FILLS), max_size=2),
        "options": st.dictionaries(names, st.integers() | st.booleans(), max_size=2),
        "role": st.sampled_from([r for r in ROLES if r != "traffic"]),
    })  # fmt: skip
    cases = [c | {"id": f"case-{i}"} for i, c in enumerate(more.draw(st.lists(case, min_size=1, max_size=3)))]
    spec = parse(changed(**data, cases=cases))

    assert {k: getattr(spec, k) for k in ("title", "entry", "minutes")} == {
        k: data[k] for k in ("title", "entry", "minutes")
    }
    assert list(spec.needs) == data["needs"]
    assert {t.name: str(t).removesuffix("[]") for t in spec.args} == {
        k: v.removesuffix("[]") for k, v in data["args"].items()
    }
    assert [{k: c.to_json()[k] for k in cases[0]} for c in spec.cases] == cases


jsonable = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)
all_cases = st.builds(
    Case, id=st.text(max_size=9), dims=st.dictionaries(names, st.integers(0)), dtype=st.sampled_from(DTYPES),
    layout=st.dictionaries(names, st.sampled_from(LAYOUTS)), fill=st.dictionaries(names, st.sampled_from(FILLS)),
    options=st.dictionaries(names, jsonable), role=st.sampled_from(ROLES), model=st.text(max_size=5), seed=st.integers(0),
)  # fmt: skip


@given(all_cases)
def test_a_case_survives_json(case):
    again = Case.from_json(json.loads(json.dumps(case.to_json())))

    assert again == case
    assert again.key() == case.key()


@given(all_cases, st.integers(0))
def test_another_seed_is_another_case_with_the_same_words(case, seed):
    other = case.with_seed(seed)

    assert (other.key() == case.key()) == (seed == case.seed)
    assert other.with_seed(case.seed) == case


def test_a_cost_adds_up():
    assert Cost(3, 4, 100).bytes_moved == 7
