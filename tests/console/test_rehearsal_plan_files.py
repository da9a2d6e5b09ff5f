"""Files that a plan names: prompts of the operator's own, and recorded traffic in its public forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.rehearsing.plans.drawing import draw, trace_notes
from console.rehearsing.plans.errors import PlanError
from console.rehearsing.plans.lengths import TEMPLATE_TOKENS, about_tokens, fitting
from console.rehearsing.plans.prompt_files import Prompt, read_prompts
from console.rehearsing.plans.public_traces import traced_requests
from store.rehearsal.plan import Mix, Phase, Plan, PublicTrace
from store.rehearsal.records import Message

# As they are published, down to the ends of lines.
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n"
    "2023-11-16 18:17:09.9799600,110,27"
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2024-05-10 00:00:00.009930+00:00,2162,5\n"
    "2024-05-10 00:00:00.509930+00:00,2162,5\n"
    "2024-05-10 00:00:01+00:00,2162,5\n"
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,230,1317,Conversation log\n"
    "45.5,GPT-4,417,0,417,API log\n"
    "118,GPT-4,417,276,693,Conversation log\n"
)
BURSTGPT_3 = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,,3.1,ChatGPT,472,18,490,API log\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3000, "input_length": 915, "output_length": 355, "hash_ids": [0, 462]}\n'
)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def said(messages: str) -> tuple[Message, ...]:
    return (Message("user", messages),)


def test_prompts_of_a_jsonl_are_read_with_what_they_say_of_themselves(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "mine.jsonl",
        '\ufeff{"prompt": "Äh", "max_tokens": 9, "id": 3}\n\n'
        '{"messages": [{"role": "system", "content": "Short"}, {"role": "user", "content": "Hi"}], "temperature": 1}',
    )
    assert read_prompts(path) == (
        Prompt(said("Äh"), 9),
        Prompt((Message("system", "Short"), Message("user", "Hi")), None, 1.0),
    )


def test_prompts_of_a_csv_are_read_with_what_they_say_of_themselves(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.csv", 'id,prompt,max_tokens,temperature\r\n1,"Two\r\nlines, ""so""",, \r\n2,b,7,0.5')
    assert read_prompts(path) == (Prompt(said('Two\r\nlines, "so"')), Prompt(said("b"), 7, 0.5))


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.jsonl", '{"prompt": "a"}\n{"prompt": "b"\n', " line 2: Input data was truncated"),
        ("a.jsonl", '{"prompt": "a"}\n\n{"promt": "b"}', " line 3: a line has either prompt or messages"),
        ("a.jsonl", '{"prompt": "a", "messages": []}', " line 1: a line has either prompt or messages"),
        ("a.jsonl", '{"prompt": 3}', " line 1: Expected `str | null`, got `int` - at `$.prompt`"),
        ("a.jsonl", '{"prompt": " "}', " line 1: the prompt is empty"),
        ("a.jsonl", '{"messages": []}', " line 1: the prompt is empty"),
        ("a.jsonl", '{"messages": [{"role": "user"}]}', " line 1: Object missing required field `content`"),
        ("a.jsonl", '{"prompt": "a", "max_tokens": 0}', " line 1: Expected `int` >= 1 - at `$.max_tokens`"),
        ("a.jsonl", '{"prompt": "a", "temperature": 3}', " line 1: Expected `float` <= 2.0 - at `$.temperature`"),
        ("a.jsonl", "\n\n", ": there is no prompt in it"),
        ("a.jsonl", b'{"prompt": "a"}\n{"prompt": "\xff"}\n', ": no text in UTF-8"),
        ("a.csv", "", ": there is no prompt in it"),
        ("a.csv", "prompt\n", ": there is no prompt in it"),
        ("a.csv", "promt,b\nx,y\n", " line 1: the heading has no column 'prompt'; did you mean promt?"),
        ("a.csv", 'prompt,max_tokens\n"two\nlines",8\nb,many\n', " line 4: Expected `int | null`, got `str`"),
        ("a.csv", "prompt,temperature\na,nan\n", " line 2: Expected `float` >= 0.0 - at `$.temperature` (it is 'nan')"),
        ("a.csv", "prompt,max_tokens\na\n", " line 2: 1 fields where the heading has 2"),
        ("a.csv", 'prompt\na\n"b\n', " line 3: no CSV: unexpected end of data"),
        ("a.csv", "prompt,x\n ,y\n", " line 2: the prompt is empty"),
    ],
)  # fmt: skip
def test_a_broken_prompt_is_refused_with_its_file_and_line(
    tmp_path: Path, name: str, text: str | bytes, complaint: str
) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(PlanError) as refused:
        read_prompts(path)
    assert str(refused.value).startswith(f"{path}{complaint}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv"):
        with pytest.raises(PlanError, match=rf"{name}: can't be read \(No such file or directory\)"):
            read_prompts(tmp_path / name)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.text(max_size=20)
        | st.sampled_from(
            ['{"prompt": "a"}', '{"prompt": "\\ud800"}', "[" * 5000, '{"prompt": "a", "max_tokens": 1e999}']
        ),
        max_size=4,
    ),
    name=st.sampled_from(["a.jsonl", "a.csv"]),
)
def test_any_file_is_read_as_prompts_or_refused_by_name(tmp_path: Path, lines: list[str], name: str) -> None:
    path = written(tmp_path, name, "\n".join(["prompt", *lines] if name == "a.csv" else lines).encode())
    try:
        found = [prompt.messages[0].content.encode() for prompt in read_prompts(path)]
    except PlanError as error:
        found = [str(error).startswith(str(path)) and b"refused"]
    assert all(found)


def plan(path: Path, form: str, seconds: float, speed: float = 1.0, prompts: str = "code") -> Plan:
    phases = (Phase(name="first", seconds=seconds / 2, rate=0.0), Phase(name="second", seconds=seconds / 2, rate=9.0))
    return Plan(
        name="traced",
        arms=("k0",),
        mix=(Mix(name="mine", share=1.0, prompts=prompts, max_tokens=(5,)),),
        phases=phases,
        trace=PublicTrace(file=str(path), format=form, speed=speed),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("form", "text", "found"),
    [
        ("azure", AZURE, [(0.0, 4808, 10), (0.052, 3180, 8), (6.0, 110, 27)]),
        ("azure", AZURE_2024, [(0.0, 2162, 5), (0.5, 2162, 5), (0.99007, 2162, 5)]),
        ("burstgpt", BURSTGPT, [(0.0, 472, 18), (40.0, 1087, 230), (40.5, 417, 0), (113.0, 417, 276)]),
        ("burstgpt", BURSTGPT_3, [(0.0, 472, 18)]),
        ("mooncake", MOONCAKE, [(0.0, 6758, 500), (3.0, 915, 355)]),
    ],
)
def test_a_public_trace_is_read_in_its_published_form(
    tmp_path: Path, form: str, text: str, found: list[tuple[float, int, int]]
) -> None:
    path = written(tmp_path, "trace", text)
    read = list(traced_requests(PublicTrace(file=str(path), format=form)))  # type: ignore[arg-type]
    assert [(one.ts - read[0].ts, one.prompt_tokens, one.output_tokens) for one in read] == [
        (pytest.approx(ts, abs=1e-6), *lengths) for ts, *lengths in found
    ]


@pytest.mark.parametrize(
    ("form", "text", "complaint"),
    [
        ("azure", AZURE.replace("ContextTokens", "Context"), " line 1: the heading has no column 'ContextTokens'"),
        ("azure", BURSTGPT, " line 1: the heading has no column 'TIMESTAMP'"),
        ("azure", AZURE.replace("2023-11-16 18:17:04", "yesterday"), " line 3: 'yesterday.0319600'"),
        ("azure", AZURE.replace("3180", "-1"), " line 3: ContextTokens '-1' is no number of tokens"),
        ("azure", AZURE.replace("18:17:09", "18:16:09"), " line 4: it is 54.052 s before the line above; sort"),
        ("burstgpt", BURSTGPT.replace("45,", "soon,"), " line 3: Timestamp 'soon' is no number of seconds"),
        ("burstgpt", BURSTGPT.replace("45,", "nan,"), " line 3: its time is no finite number"),
        ("burstgpt", BURSTGPT.replace("1087", "1.5"), " line 3: Request tokens '1.5' is no number of tokens"),
        ("mooncake", MOONCAKE.replace("915", '"long"'), " line 2: Expected `int`, got `str` - at `$.input_length`"),
        ("mooncake", MOONCAKE.replace("output_length", "output"), " line 1: Object missing required field `output_len"),
    ],
)  # fmt: skip
def test_a_broken_line_of_a_trace_is_refused_with_its_number(
    tmp_path: Path, form: str, text: str, complaint: str
) -> None:
    path = written(tmp_path, "trace", text)
    with pytest.raises(PlanError) as refused:
        draw(plan(path, form, 600.0), 1, 1.0)
    assert str(refused.value).startswith(f"{path}{complaint}")


def test_with_a_trace_moments_and_lengths_are_recorded_ones_and_the_text_is_the_workloads(tmp_path: Path) -> None:
    path = written(tmp_path, "trace", BURSTGPT)
    drawn = draw(plan(path, "burstgpt", 12.0, speed=10.0), 1, scale=5.0)
    assert [(one.at, one.phase, one.max_tokens, one.exact) for one in drawn] == [
        (0.0, 0, 18, True), (4.0, 0, 230, True), (pytest.approx(11.3), 1, 276, True),
    ]  # fmt: skip
    for one, tokens in zip(drawn, (472, 1087, 417), strict=True):
        assert about_tokens(one.messages) == pytest.approx(tokens, abs=2)
        assert "def " in one.messages[0].content
    assert trace_notes(plan(path, "burstgpt", 12.0, speed=10.0), None) == [
        "1 rows of the trace had no prompt or no answer and were left out",
        "the trace ends after 11 s; nothing is sent in the rest of the plan's time",
    ]


def test_a_trace_is_cut_to_the_plans_time_and_what_comes_after_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, "trace", AZURE + "\nbroken")
    assert [one.max_tokens for one in draw(plan(path, "azure", 2.0), 1, 1.0)] == [10, 8]
    assert trace_notes(plan(path, "azure", 2.0), None) == []


def test_the_moments_of_a_trace_are_the_same_in_each_repeat_and_the_prompts_are_not(tmp_path: Path) -> None:
    path = written(tmp_path, "trace", MOONCAKE)
    first, second = (draw(plan(path, "mooncake", 9.0), repeat, 1.0) for repeat in (1, 2))
    assert [one.at for one in first] == [one.at for one in second] == [0.0, 3.0]
    assert [one.messages for one in first] != [two.messages for two in second]


def test_requests_beyond_the_context_are_clipped_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "trace", AZURE)
    asked = plan(path, "azure", 10.0)
    drawn = draw(asked, 1, 1.0, max_model_len=2048)
    assert [one.max_tokens for one in drawn] == [10, 8, 27]
    # At 2.5 bytes a token, the fewest that are met with, each still fits.
    sizes = [len(one.messages[0].content.encode()) for one in drawn]
    assert all(size / 2.5 + one.max_tokens <= 2048 for size, one in zip(sizes, drawn, strict=True))
    assert sizes[0] > 4000
    assert trace_notes(asked, 2048) == [
        "2 of 3 requests of the trace were clipped, so that they fit for certain into the engine's context of 2048 "
        "tokens",
        "the trace ends after 6 s; nothing is sent in the rest of the plan's time",
    ]


@given(prompt=st.integers(1, 200_000), answer=st.integers(1, 200_000), context=st.integers(64, 100_000))
def test_clipped_lengths_fit_and_an_answer_keeps_half_of_the_context(prompt: int, answer: int, context: int) -> None:
    lengths = fitting(prompt, answer, context)
    assert 1 <= lengths.prompt_tokens <= prompt
    assert min(answer, (context - TEMPLATE_TOKENS) // 2) <= lengths.output_tokens <= answer
    assert lengths.prompt_tokens * 4 / 2.5 + lengths.output_tokens + TEMPLATE_TOKENS <= context
    assert lengths.clipped == ((lengths.prompt_tokens, lengths.output_tokens) != (prompt, answer))
    if prompt * 4 / 2.5 + answer + TEMPLATE_TOKENS < context - 2:
        assert not lengths.clipped


def test_a_plan_of_a_trace_without_any_request_in_its_time_is_refused(tmp_path: Path) -> None:
    failed = BURSTGPT.replace(",18,", ",0,")
    path = written(tmp_path, "trace", failed)
    with pytest.raises(PlanError, match=r"no request of it falls into the plan's 20 s; raise speed"):
        draw(plan(path, "burstgpt", 20.0), 1, 1.0)
    with pytest.raises(PlanError, match=r"trace: can't be read \(No such file"):
        draw(plan(tmp_path / "no" / "trace", "azure", 20.0), 1, 1.0)


def test_prompts_with_an_answer_of_their_own_need_none_from_the_plan_and_keep_their_temperature(tmp_path: Path) -> None:
    path = written(
        tmp_path, "a.jsonl", '{"prompt": "a", "max_tokens": 3}\n{"prompt": "b", "max_tokens": 4, "temperature": 1}'
    )
    mix = Mix(name="mine", share=1.0, prompts=str(path), max_tokens=(), temperature=0.2)
    phases = (Phase(name="all", seconds=10.0, rate=2.0),)
    drawn = draw(Plan(name="own", arms=("k0",), mix=(mix,), phases=phases), 1, 1.0)
    assert {(one.messages[0].content, one.max_tokens, one.temperature) for one in drawn} == {
        ("a", 3, 0.2),
        ("b", 4, 1.0),
    }
