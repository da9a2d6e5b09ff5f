"""Plans of rehearsals as they are written: what is read, what is refused and how, and what an engine can run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.rehearsing.plans.arms import traffic_seconds
from console.rehearsing.plans.built_in import BUILT_IN
from console.rehearsing.plans.checking import check, check_engine
from console.rehearsing.plans.errors import PlanError
from console.rehearsing.plans.fitting import fitted
from console.rehearsing.plans.reading import parse_plan, read_plan
from console.rehearsing.plans.writing import to_toml
from store.rehearsal.plan import Deadline, Mix, Phase, Plan, PublicTrace

HERE = Path("/plans/evening.toml")

PLAN = """
arms = ["without", "k0", "k2", "proposed", "adaptive"]
repeats = 3
survey = 1

[[workload]]
name = "chat"
share = 0.6
prompts = "chat"
deadline = { e2e = 12, ttft = 1.5 }

[[workload]]
name = "code"
share = 0.4
max_tokens = 100

[[phase]]
name = "quiet"
seconds = 20
rate = 0.5

[[phase]]
name = "rising"
seconds = 30
rate = 0.5
to = 3
burstiness = 0.5
"""


def changed(old: str, new: str) -> str:
    assert PLAN.count(old) >= 1
    return PLAN.replace(old, new, 1)


def refusal(text: str, path: Path = HERE) -> str:
    with pytest.raises(PlanError) as refused:
        parse_plan(text, path)
    said = str(refused.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


def test_a_plan_is_read_as_it_is_written_and_what_is_left_out_has_its_default() -> None:
    plan = parse_plan(PLAN, HERE)
    assert plan == Plan(
        name="evening",
        arms=("without", "k0", "k2", "proposed", "adaptive"),
        repeats=3,
        survey=1,
        mix=(
            Mix(
                name="chat", share=0.6, prompts="chat", max_tokens=(48, 64, 80), temperature=0.3,
                deadline=Deadline(e2e=12.0, ttft=1.5),
            ),
            Mix(name="code", share=0.4, prompts="code", max_tokens=(100,)),
        ),
        phases=(
            Phase(name="quiet", seconds=20.0, rate=0.5),
            Phase(name="rising", seconds=30.0, rate=0.5, to=3.0, burstiness=0.5),
        ),
    )  # fmt: skip
    assert (plan.scale, plan.fallback_test, plan.trace) == (None, True, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed("share = 0.4", "share = 0.3"), "workload 2 (code): share 0.3: the shares add up to 0.9, they must be"),
        (changed("share = 0.4", "share = 0"), "workload 2 (code): share is 0: above 0"),
        (changed("share = 0.4", "share = nan"), "workload 2 (code): share must be a finite number, not nan"),
        (changed("share = 0.4\n", ""), "workload 2 (code): share is missing, e.g. share = 0.5"),
        (changed('name = "code"', 'name = "chat"\nprompts = "code"'), "workload 2 (chat): workload 1 has this"),
        (changed('prompts = "chat"', 'prompts = "chta"'), "workload 1 (chat): there are no prompts 'chta'; did"),
        (changed('name = "code"', 'name = "sums"'), 'workload 2 (sums): prompts is missing, e.g. prompts = "chat"'),
        (changed("max_tokens = 100", "max_tokens = []"), "workload 2 (code): max_tokens is an empty list"),
        (changed("max_tokens = 100", "max_tokens = [9, 0]"), "workload 2 (code): max_tokens is 0: 1 to"),
        (changed("max_tokens = 100", "temperature = -1"), "workload 2 (code): temperature is -1: 0 to 2"),
        (changed("e2e = 12", "e2e = 0"), "workload 1 (chat): deadline e2e is 0: seconds above 0; leave it out"),
        (changed("e2e = 12", "e2e = inf"), "workload 1 (chat): deadline: e2e must be a finite number, not inf"),
        (changed("e2e = 12", "tfft = 12"), "workload 1 (chat): deadline: 'tfft' is unknown; did you mean ttft?"),
        (changed("max_tokens", "max_token"), "workload 2 (code): 'max_token' is unknown; did you mean max_tokens?"),
        (changed("repeats", "repeat"), "'repeat' is unknown; did you mean repeats? (known: name, arms,"),
        (changed("seconds = 20\n", ""), "phase 1 (quiet): seconds is missing, e.g. seconds = 60"),
        (changed("seconds = 20", "seconds = 0"), "phase 1 (quiet): seconds is 0: above 0"),
        (changed("seconds = 20", 'seconds = "20"'), "phase 1 (quiet): seconds must be a number, not '20'"),
        (changed("rate = 0.5", "rate = -0.5"), "phase 1 (quiet): rate is -0.5: requests/s, 0 or more"),
        (changed("burstiness = 0.5", "burstiness = 0"), "phase 2 (rising): burstiness is 0: 0.05 to 100; 1 is Poisson"),
        (changed('name = "rising"', 'name = "quiet"'), "phase 2 (quiet): phase 1 has this name already"),
        (PLAN[: PLAN.index("[[phase]]")], "there is no phase: say when how much is sent, under a line [[phase]]"),
        ('arms = ["k0"]\n[[phase]]\nname="a"\nseconds=9\nrate=1', "there is no workload: say what is sent, "),
        ("workload = 3", "workload is written as tables, each under a line [[workload]]"),
        (changed('"k2"', '"k2", "k2"'), "arms: k2 stands there twice"),
        (changed('"k2"', '"adaptiv"'), "arms: 'adaptiv' is no arm; did you mean adaptive?"),
        (changed('"k2"', '"k02"'), "arms: 'k02' is no arm; did you mean k"),
        (changed('"k2"', f'"k{"9" * 5000}"'), "arms: 'k999"),
        (changed('"without", "k0", "k2", "proposed", "adaptive"', ""), "arms is empty: say what is compared"),
        (changed('"k2", ', ""), "arms: proposed chooses among fixed draft lengths; have two at least"),
        (changed("survey = 1", "survey = 3"), "survey is 3 of 3 repeats, so that none is left for proposed"),
        (changed("survey = 1", "survey = 4"), "survey is 4: from 0 to the 3 repeats"),
        (changed("survey = 1", "survey = 0"), "survey is 0, and the schedule of the arm proposed comes"),
        (changed("repeats = 3", "repeats = 0"), "repeats is 0: 1 to 100"),
        (changed("repeats = 3", "repeats = true"), "repeats must be a whole number, not True"),
        ("scale = 0\n" + PLAN, "scale is 0: above 0"),
        ("fallback_test = 1\n" + PLAN, "fallback_test must be true or false, not 1"),
        ("seed = -1\n" + PLAN, "seed is -1: 0 to"),
        ('name = "../up"\n' + PLAN, "name '../up': a folder is called by it"),
        (changed("rate = 0.5", "rate = 20000"), "400,052 requests are expected in one pass, more than 200,000"),
        ("scale = 0.001\n" + PLAN, "0.062 requests are expected in all phases together; raise rate or seconds"),
        ("arms = [", "no TOML: "),
        (f"seed = 0x{'f' * 9000}\n{PLAN}", "no TOML: 'seed' is a whole number beyond 64 bits"),
        (f"scale = 0x{'f' * 9000}\n{PLAN}", "no TOML: 'scale' is a whole number beyond 64 bits"),
    ],
    ids=lambda value: value[:28] if value.count(chr(10)) < 2 and len(value) < 200 else "",
)  # fmt: skip
def test_what_is_wrong_is_refused_by_its_place_with_a_remedy(text: str, said: str) -> None:
    assert refusal(text).startswith(said)


def test_shares_may_miss_one_by_what_rounding_takes() -> None:
    thirds = PLAN.replace("share = 0.6", "share = 0.333").replace("share = 0.4", "share = 0.667")
    assert parse_plan(thirds, HERE).mix[0].share == 0.333
    assert "add up to 0.998" in refusal(thirds.replace("0.667", "0.665"))


def test_a_single_workload_needs_no_share() -> None:
    text = PLAN.replace("share = 0.6\n", "").replace('[[workload]]\nname = "code"\nshare = 0.4\nmax_tokens = 100\n', "")
    assert [one.share for one in parse_plan(text, HERE).mix] == [1.0]


LITERALS = (
    "-1",
    "0",
    "nan",
    "inf",
    "1e400",
    '""',
    '"\\u001b[31m"',
    "[]",
    "[[]]",
    "{}",
    "true",
    "1979-05-27",
    "0x" + "f" * 4000,
)


@settings(deadline=None)
@given(line=st.integers(0, PLAN.count("\n")), value=st.sampled_from(LITERALS), rest=st.text(max_size=5))
def test_whatever_stands_in_a_line_the_plan_is_read_or_refused_in_one_line(line: int, value: str, rest: str) -> None:
    lines = PLAN.splitlines()
    key, equals, _ = lines[min(line, len(lines) - 1)].partition("=")
    lines[min(line, len(lines) - 1)] = f"{key}{equals}{value}{rest}" if equals else rest
    try:
        parse_plan("\n".join(lines), HERE)
        said = f"{HERE}: read"
    except PlanError as error:
        said = str(error)
    assert said.startswith(f"{HERE}: ")
    assert said.isprintable()


def test_an_unknown_plan_and_an_unreadable_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no plan 'smok'; did you mean smoke"):
        read_plan("smok")
    with pytest.raises(PlanError, match=r"missing.toml: can't be read \(No such file or directory\)"):
        read_plan(str(tmp_path / "missing.toml"))
    (tmp_path / "odd.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(PlanError, match="no text in UTF-8"):
        read_plan(str(tmp_path / "odd.toml"))


# What any plan that can be read looks like.
numbers = st.floats(0.001, 9.0)
names = st.from_regex(r"[a-z][a-z0-9 ]{0,8}[a-z]", fullmatch=True)
deadlines = st.builds(Deadline, e2e=st.none() | numbers, ttft=st.none() | numbers, tpot=st.none() | numbers)
phases = st.lists(
    st.builds(
        Phase, name=names | st.just("\"'\\ü…"), seconds=st.floats(2, 99), rate=st.floats(1, 9),
        to=st.none() | numbers, burstiness=st.floats(0.05, 100),
    ),
    min_size=1, max_size=4, unique_by=lambda phase: phase.name,
)  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    called = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    mix = tuple(
        Mix(
            name=name,
            share=1 / len(called),
            prompts=draw(st.sampled_from(["code", "repeat", "chat", "creative"])),
            max_tokens=tuple(draw(st.lists(st.integers(1, 999), min_size=1, max_size=3))),
            temperature=draw(st.floats(0, 2)),
            deadline=draw(deadlines),
        )
        for name in called
    )
    return Plan(
        name=draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)),
        arms=tuple(draw(st.permutations(["without", "k0", "k3", "proposed", "adaptive"]))),
        mix=mix,
        phases=tuple(draw(phases)),
        repeats=draw(st.integers(2, 9)),
        seed=draw(st.integers(0, 2**53)),
        scale=draw(st.none() | st.floats(0.5, 2)),
        fallback_test=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=60)
@given(plan=plans())
def test_a_plan_written_as_toml_is_read_as_the_same_plan(plan: Plan) -> None:
    assert parse_plan(to_toml(plan), HERE) == plan


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_plan_is_sound_and_reads_back_from_its_toml(name: str) -> None:
    plan = read_plan(name)
    check(plan)
    assert parse_plan(to_toml(plan), HERE) == plan
    busy = next(phase for phase in plan.phases if phase.name == "busy")
    assert 1.2 <= busy.rate * 80.4 / 200 <= 1.4, "more than eight at once can take: heavier load is measured too"


def test_built_in_plans_send_for_the_time_that_they_are_said_to() -> None:
    minutes = {name: traffic_seconds(plan) / 60 for name, plan in BUILT_IN.items()}
    assert minutes == {"smoke": 2, "quick": 10, "full": 57}
    assert set(BUILT_IN["smoke"].arms) == {"k0", "k2"}


LIMITS = {"max_k": 4, "max_num_seqs": 32, "max_model_len": 2048, "drafts": True}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_k": 1}, "arms: k2 drafts 2 tokens and the engine 1 at most; leave it out, or start"),
        ({"drafts": False}, "arms: k0, k2, proposed, adaptive need a drafter and the engine has none"),
        ({"max_num_seqs": 1}, "fallback_test can't be run: the engine runs 1 sequences at once"),
        ({"max_model_len": 80}, "workload 1 (chat): an answer of 80 tokens is longer than the engine's context of 80"),
        ({"max_model_len": 600}, "workload 2 (code): a prompt of about "),
    ],
)  # fmt: skip
def test_what_an_engine_cannot_run_is_refused(limits: dict[str, int], said: str) -> None:
    plan = parse_plan(PLAN, HERE)
    check_engine(plan, **LIMITS)  # type: ignore[arg-type]
    with pytest.raises(PlanError) as refused:
        check_engine(plan, **(LIMITS | limits))  # type: ignore[arg-type]
    assert str(refused.value).startswith(said)


def test_an_engine_without_a_drafter_can_run_the_arm_without_speculation() -> None:
    plan = msgspec.structs.replace(parse_plan(PLAN, HERE), arms=("without",))
    check_engine(plan, **(LIMITS | {"drafts": False, "max_k": 0}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("max_k", "own", "arms", "notes"),
    [
        (4, True, "without k0 k2 k4 proposed adaptive", ""),
        (8, True, "without k0 k2 k4 proposed adaptive", ""),
        (3, True, "without k0 k2 k3 proposed adaptive", "k4 left out: the engine drafts 3 tokens at most, k3 stands"),
        (2, True, "without k0 k2 proposed adaptive", "k4 left out: the engine drafts 2 tokens at most"),
        (
            1,
            True,
            "without k0 k1 proposed adaptive",
            "k2 and k4 left out: the engine drafts 1 token at most, k1 stands",
        ),
        (4, False, "k0 k2 k4 proposed adaptive", "without speculation is not measured"),
    ],
)
def test_a_built_in_plan_is_fitted_to_the_engine(max_k: int, own: bool, arms: str, notes: str) -> None:
    plan, said = fitted(BUILT_IN["quick"], max_k, True, own)
    assert " ".join(plan.arms) == arms
    assert " ".join(said).startswith(notes)
    assert bool(said) == bool(notes)
    check(plan)
    check_engine(plan, **(LIMITS | {"max_k": max_k}))  # type: ignore[arg-type]


def test_a_fitted_plan_leaves_out_a_fallback_test_that_the_engine_is_too_small_for() -> None:
    plan, said = fitted(BUILT_IN["smoke"], 4, True, True, max_num_seqs=2)
    assert not plan.fallback_test
    assert said[0].startswith("the fallback test is left out: the engine runs 2 sequences")


def test_nothing_is_fitted_to_an_engine_that_drafts_nothing() -> None:
    with pytest.raises(PlanError, match="nothing to rehearse; start it with --drafter"):
        fitted(BUILT_IN["smoke"], 4, False, True)


def test_files_of_a_plan_lie_beside_it_and_come_out_as_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"prompt": "Hello there", "max_tokens": 9}\n')
    (tmp_path / "azure.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,48,10\n")
    (tmp_path / "plan.toml").write_text(
        'arms = ["k0"]\n[[workload]]\nname = "mine"\nprompts = "mine.jsonl"\n'
        '[[phase]]\nname = "all"\nseconds = 9\n[trace]\nfile = "azure.csv"\nformat = "azure"\n'
    )
    plan = read_plan(str(tmp_path / "plan.toml"))
    assert plan.mix[0] == Mix(name="mine", share=1.0, prompts=str(tmp_path / "mine.jsonl"), max_tokens=())
    assert plan.trace == PublicTrace(file=str(tmp_path / "azure.csv"), format="azure")
    assert parse_plan(to_toml(plan), tmp_path / "elsewhere" / "plan.toml") == plan
