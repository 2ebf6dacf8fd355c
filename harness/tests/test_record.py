"""A line of a record: what it holds, what reading it back says, and that README.md describes it."""

import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import record
from harness.record import SCHEMA, START, Attempt, Reading, from_line, stamp

ROOT = Path(__file__).resolve().parents[2]
# too slow: other work on the machine is no fault of a test
QUICK = settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

GOLDEN = (
    '{"schema":1,"kind":"attempt","time":"2026-03-01T09:30:00.000Z","id":"nf4","slug":"05_nf4","verdict":"slow",'
    '"reason":"twice the bytes \\u2026","speed":{"kind":"modelled","share":0.5},"help":{"hints":1,"peek":false},'
    '"source":"ab12","seed":7,"whole":true,"device":"cpu, modelled for NVIDIA H200","versions":{"python":"3.11.7",'
    '"triton":null},"digest":"a6b16c1eeca974b45c3db6a1117989b6faf69ac9fcbad95daa3fa36e3f6d4962"}'
)
EVENT = Attempt(
    id="nf4",
    slug="05_nf4",
    time="2026-03-01T09:30:00.000Z",
    verdict="slow",
    reason="twice the bytes …",
    speed={"kind": "modelled", "share": 0.5},
    help={"hints": 1, "peek": False},
    source="ab12",
    seed=7,
    device="cpu, modelled for NVIDIA H200",
    versions={"python": "3.11.7", "triton": None},
)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
attempts = st.builds(
    Attempt,
    id=st.text(min_size=1),
    slug=st.text(min_size=1),
    time=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(record.UTC)).map(stamp),
    verdict=st.text(),
    reason=st.text().map(record.first_line),
    speed=st.none() | st.dictionaries(st.text(), plain, max_size=3),
    source=st.text(st.characters(categories=["Cs", "L"])),
    seed=st.integers(0, 2**31),
    versions=st.dictionaries(st.text(), st.none() | st.text(), max_size=3),
)


def signed(**data) -> str:
    """Return a line whose digest is right, whatever it says."""
    data = {k: v for k, v in data.items() if v is not ...}
    return json.dumps(data | {"digest": record.digest_of(data)})


def test_the_line_is_the_promised_one():
    assert EVENT.to_line() == GOLDEN
    assert from_line(GOLDEN) == Reading("ok", EVENT)
    assert from_line(GOLDEN.encode() + b"\r") == Reading("ok", EVENT)
    assert GOLDEN.startswith(START)


def test_the_digest_is_that_of_the_line_without_it():
    rest, digest = re.fullmatch(r'(.*),"digest":"(.*)"}', GOLDEN).groups()

    assert hashlib.sha256((rest + "}").encode()).hexdigest() == digest


def test_events_other_than_attempts_leave_out_what_is_empty():
    line = Attempt(id="nf4", slug="05_nf4", kind="peek", time=EVENT.time, help={}).to_line()

    assert list(json.loads(line)) == ["schema", "kind", "time", "id", "slug", "digest"]
    assert from_line(line).attempt.kind == "peek"
    assert from_line(line).attempt.whole


@QUICK
@given(attempts)
def test_every_event_comes_back_as_it_was(event):
    line = event.to_line()

    assert line.isascii() and "\n" not in line and line.startswith(START)
    assert from_line(line) == Reading("ok", event)
    assert from_line(json.dumps(json.loads(line), indent=1)).attempt == event


@QUICK
@given(st.integers(0, len(GOLDEN) - 1), st.integers(1, 255))
def test_a_changed_byte_never_counts(at, change):
    data = bytearray(GOLDEN.encode())
    data[at] ^= change

    assert from_line(bytes(data)).attempt is None or bytes(data).strip() == GOLDEN.encode()


@QUICK
@given(st.integers(0, len(GOLDEN) - 1))
def test_a_cut_line_is_corrupt(at):
    assert from_line(GOLDEN[:at]).status == "corrupt"


@QUICK
@given(st.binary() | st.text() | plain.map(json.dumps))
def test_reading_never_raises(line):
    assert from_line(line).status == "corrupt"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"schema":' + "9" * 5_000, '{"schema":true}', '{"schema":0}'])
def test_reading_never_raises_on_odd_json(line):
    assert from_line(line).status == "corrupt"


def test_a_newer_schema_is_said_whatever_else_it_holds():
    assert from_line('{"schema":2,"what":"ever"}') == Reading("newer", why="schema 2")
    assert from_line(json.dumps({"schema": SCHEMA + 1, "digest": "by another rule"})).status == "newer"


@pytest.mark.parametrize(
    "change, why",
    [
        ({"kind": "dance"}, "its kind is 'dance'"),
        ({"time": "yesterday"}, "its time is 'yesterday'"),
        ({"time": "2026-03-01T09:30:00"}, "its time is '2026-03-01T09:30:00'"),
        ({"time": "2026-03-01T09:30:00+02:00"}, "its time is '2026-03-01T09:30:00+02:00'"),
        ({"time": ...}, "it has no time"),
        ({"after": "later"}, "its after is 'later'"),
        ({"id": ""}, "it has no id"),
        ({"id": 5}, "its id is 5"),
        ({"slug": ...}, "it has no slug"),
        ({"help": {"hints": "two"}}, "its help is {'hints': 'two'}"),
        ({"speed": 3}, "its speed is 3"),
    ],
)
def test_a_line_that_says_what_cannot_be_is_corrupt(change, why):
    good = {"schema": 1, "kind": "attempt", "time": EVENT.time, "id": "nf4", "slug": "05_nf4"}

    assert from_line(signed(**good)).status == "ok"
    assert from_line(signed(**good | change)) == Reading("corrupt", why=why)


def test_fields_that_it_does_not_know_are_no_fault():
    line = signed(**json.loads(GOLDEN) | {"digest": ..., "mood": "good"})

    assert from_line(line) == Reading("ok", EVENT)


def test_what_json_lacks_is_written_as_what_it_has(monkeypatch):
    event = Attempt(
        id="nf4", slug="05_nf4", time=EVENT.time, speed={1: (float("nan"), float("inf")), "path": Path("x")}
    )

    assert from_line(event.to_line()).attempt.speed == {"1": [None, None], "path": "x"}


def test_a_reason_is_its_first_line_and_not_too_long():
    assert record.first_line("\n wrong here\nand there") == "wrong here"
    assert record.first_line("") == ""
    assert record.first_line("wrong here \r\nand there") == "wrong here"
    assert len(record.first_line("x" * 301)) == 300
    assert from_line(Attempt(id="a", slug="01_a", reason="one\ntwo").to_line()).attempt.reason == "one"


def test_times_are_utc_and_the_clock_can_be_replaced(monkeypatch):
    monkeypatch.setattr(record, "now", lambda: datetime(2026, 3, 1, 11, 30, tzinfo=timezone(timedelta(hours=2))))

    assert stamp() == Attempt(id="a", slug="01_a").time == "2026-03-01T09:30:00.000Z"
    assert Attempt(id="a", slug="01_a").at == datetime(2026, 3, 1, 9, 30, tzinfo=record.UTC)


def test_only_a_whole_graded_run_passes():
    def event(**changes) -> Attempt:
        return Attempt(**{"id": "a", "slug": "01_a", "verdict": "pass"} | changes)

    assert event().passed
    assert not event(verdict="slow").passed
    assert not event(whole=False).passed
    assert not event(kind="peek").passed


def test_versions_are_found_without_importing_anything():
    code = "import sys; from pathlib import Path; from harness import record, store, streaks\n"
    code += f"print(record.versions(Path({str(ROOT)!r}))); print({{'torch', 'triton'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found, imported = done.stdout.splitlines()

    assert imported == "set()"
    assert re.fullmatch(r"{'python': '3\.\d+\.\d+\S*', 'torch': .+, 'triton': .+, 'harness': '\d+\.\d+\.\d+'}", found)


def test_versions_of_what_is_missing_are_none(tmp_path):
    assert record.versions(tmp_path)["harness"] is None


def test_the_readme_of_records_describes_this_schema():
    text = (ROOT / "records" / "README.md").read_text(encoding="utf-8")
    (number,) = re.findall(r"^## A line of `attempts/`, schema (\d+)$", text, re.M)
    table = re.findall(r"^\| `(\w+)` \|", text.partition("## A line of")[2], re.M)
    line = Attempt(id="a", slug="01_a", after=EVENT.time).to_line()

    assert int(number) == SCHEMA
    assert table == list(json.loads(line))
    assert all(f"`{kind}`" in text for kind in record.KINDS)
    assert f"at most {record.REASON_CHARS} characters" in text
