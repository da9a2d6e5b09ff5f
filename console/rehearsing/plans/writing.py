"""A plan as TOML that reads back as the same plan: a start for one of the operator's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from store.rehearsal.plan import Deadline, Mix, Phase, Plan, PublicTrace


def to_toml(plan: Plan) -> str:
    """The form that `reading` tells of, with what is at its default left in where it is worth a thought."""
    return "\n".join(
        [
            *_head(plan),
            *(line for one in plan.mix for line in _workload(one)),
            *(line for one in plan.phases for line in _phase(one)),
            *(_trace(plan.trace) if plan.trace is not None else ()),
            "",
        ]
    )


def _head(plan: Plan) -> Iterator[str]:
    yield f"name = {_text(plan.name)}"
    yield f"arms = {_list(map(_text, plan.arms))}"
    yield f"repeats = {plan.repeats}"
    yield f"survey = {plan.survey}  # repeats, the first ones, in which the fixed arms are tried alone"
    yield f"seed = {plan.seed}"
    if plan.scale is not None:
        yield f"scale = {_number(plan.scale)}"
    else:
        yield "# scale = 1.0  # without it the rates are meant for 200 tokens/s, and the engine is measured first"
    yield f"fallback_test = {'true' if plan.fallback_test else 'false'}"


def _workload(one: Mix) -> Iterator[str]:
    yield from ("", "[[workload]]", f"name = {_text(one.name)}", f"share = {_number(one.share)}")
    yield f"prompts = {_text(one.prompts)}"
    if one.max_tokens:
        yield f"max_tokens = {_list(map(str, one.max_tokens))}"
    yield f"temperature = {_number(one.temperature)}"
    if one.deadline != Deadline():
        yield f"deadline = {{ {', '.join(_limits(one.deadline))} }}  # seconds"


def _limits(deadline: Deadline) -> Iterator[str]:
    for name in Deadline.__struct_fields__:
        seconds = getattr(deadline, name)
        if seconds is not None:
            yield f"{name} = {_number(seconds)}"


def _phase(one: Phase) -> Iterator[str]:
    yield from ("", "[[phase]]", f"name = {_text(one.name)}", f"seconds = {_number(one.seconds)}")
    yield f"rate = {_number(one.rate)}  # requests/s"
    if one.to is not None:
        yield f"to = {_number(one.to)}"
    if one.burstiness != 1.0:
        yield f"burstiness = {_number(one.burstiness)}"


def _trace(trace: PublicTrace) -> Iterator[str]:
    yield from ("", "[trace]", f"file = {_text(trace.file)}", f"format = {_text(trace.format)}")
    yield f"speed = {_number(trace.speed)}"


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(words)}]"


def _text(value: str) -> str:
    """JSON's text is TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
