"""A rehearsal as Markdown, to be kept beside the settings that it speaks for, or in a README."""

from __future__ import annotations

import time
from collections.abc import Iterator

from console.cli.figures_text import printable
from console.cli.map_text import cost_rows, grid, legend, repeats
from console.cli.rehearse_text_rows import (
    by_phase,
    by_workload,
    fallback_sentences,
    fewer_repeats,
    held,
    tax_sentence,
    whole_pass,
)
from console.cli.rehearse_text_words import deadline, engine_words, escaped, markdown_table, seconds
from store.operating_map.records import OperatingMap
from store.rehearsal.plan import Phase, Plan
from store.rehearsal.result_records import RehearsalResult


def markdown(result: RehearsalResult, made: OperatingMap | None) -> str:
    """`made`: None where no fixed arm was measured."""
    sections = [
        _head(result), _what_ran(result), _by_phase(result), _whole(result),
        *([_map(made)] if made is not None else []), _holding(result), _rest(result), _not_known(result, made),
    ]  # fmt: skip
    return "\n".join("\n".join(lines).rstrip() + "\n" for section in sections if (lines := list(section)))


def _head(result: RehearsalResult) -> Iterator[str]:
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(result.started))
    yield f"# Rehearsal `{_code(result.plan.name)}`, {when}"
    yield ""
    for name, value in engine_words(result.fingerprint):
        yield f"- {name}: {_text(value)}"


def _what_ran(result: RehearsalResult) -> Iterator[str]:
    plan = result.plan
    where = "an engine of its own" if result.host == "own" else "the station's engine"
    yield "## What was run"
    yield ""
    per_pass = max((part.requests // part.repeats for part in result.parts if part.phase is None), default=0)
    yield (
        f"{len(result.passes)} of {result.passes_planned} passes on {where}: {', '.join(result.arms)}; "
        f"{_repeats(plan)}. In each repeat every arm met the same requests (about {per_pass}) at the same intended "
        f"moments, {plan.seconds:.0f} s of them, whether it kept up or not. Latency counts from the intended moment."
    )
    yield ""
    yield from markdown_table(
        ["phase", "seconds", "requests/s", "burstiness"],
        [
            [printable(span.label), f"{phase.seconds:.0f}", _rate(phase, result), f"{phase.burstiness:g}"]
            for span, phase in zip(result.phases, plan.phases, strict=True)
        ],
    )
    if plan.trace is not None:
        yield ""
        trace = plan.trace
        yield f"Arrivals and lengths are a recorded trace's ({trace.format}), {trace.speed:g} s of it a second."
    yield ""
    yield from markdown_table(
        ["workload", "share", "answers of", "temperature", "deadline"],
        [
            [
                printable(mix.name),
                f"{mix.share:.0%}",
                f"{', '.join(map(str, mix.max_tokens))} tokens",
                f"{mix.temperature:g}",
                deadline(mix.deadline),
            ]
            for mix in plan.mix
        ],
    )


def _rate(phase: Phase, result: RehearsalResult) -> str:
    first, last = phase.rate * result.scale, (phase.rate if phase.to is None else phase.to) * result.scale
    return f"{first:.2g}" if first == last else f"{first:.2g} → {last:.2g}"


def _by_phase(result: RehearsalResult) -> Iterator[str]:
    yield "## Arms and phases"
    yield ""
    yield f"Equal-arrival speedup over `{result.baseline}`: time to answer the same requests there over the time here,"
    yield "queueing included. In brackets 95 % over repeats."
    yield ""
    yield from markdown_table(*by_phase(result, "speedup"))
    yield ""
    yield "Busy tokens/s: tokens over the time of the engine's steps. It is higher, too, where an arm is so slow that"
    yield "more sequences pile up and share its steps: read it beside the speedup."
    yield ""
    yield from markdown_table(*by_phase(result, "busy"))


def _whole(result: RehearsalResult) -> Iterator[str]:
    yield "## The whole pass"
    yield ""
    yield from markdown_table(*whole_pass(result))
    yield ""
    yield "Goodput: tokens/s of answers that kept their deadlines. Waiting: until the engine began with the request."
    later = fewer_repeats(result)
    if later is not None:
        yield later
    if len(result.plan.mix) > 1:
        yield ""
        yield from markdown_table(*by_workload(result))
    tax = tax_sentence(result.spec_tax)
    if tax is not None:
        yield ""
        yield tax


def _map(made: OperatingMap) -> Iterator[str]:
    yield "## Operating map"
    yield ""
    yield from markdown_table(*grid(made))
    yield ""
    yield f"From {repeats(made)}: {legend(made)}."
    yield ""
    yield "## Proposed schedule"
    yield ""
    if made.schedule is None:
        yield "None: too little of the mix was measured."
        return
    yield "From the mix, not from any one workload; `[first, last, K]` of running sequences:"
    yield ""
    yield f"    {[list(entry) for entry in made.schedule]}"
    if made.costs:
        yield ""
        yield "What it means to each workload, over the loads at which it ran:"
        yield ""
        header = ["workload", f"tokens/s over {made.baseline}", "under what is best for it alone"]
        yield from markdown_table(header, cost_rows(made))


def _holding(result: RehearsalResult) -> Iterator[str]:
    if not result.holding:
        return
    yield "## Against the fixed arms"
    yield ""
    yield "The best and the worst fixed arm of each phase were chosen on the survey; the ratios are of the other"
    yield "repeats: tokens/s with as many sequences running, and beside it busy tokens/s at whatever load each had, and"
    yield "equal-arrival speedup (E2E). An arm holds when the first is at least 0.93 and its interval reaches 0.97."
    yield ""
    yield from markdown_table(*held(result))


def _rest(result: RehearsalResult) -> Iterator[str]:
    if result.fallback is None:
        return
    yield "## Fallback test"
    yield ""
    for sentence in fallback_sentences(result.fallback):
        yield f"- {_text(sentence)}"


def _not_known(result: RehearsalResult, made: OperatingMap | None) -> Iterator[str]:
    yield "## What is not known"
    yield ""
    lags = [one.lag.p99 for one in result.passes if one.lag is not None]
    for said in dict.fromkeys([*result.warnings, *result.unknown, *result.notes, *(made.notes if made else [])]):
        yield f"- {_text(printable(said, 400))}"
    yield "- another mix, another machine or another model: nothing here speaks of them"
    if lags:
        yield ""
        yield f"The load generator sent at most {seconds(max(lags))} late (p99 of the worst pass)."


def _repeats(plan: Plan) -> str:
    if plan.repeats == 1:
        return "one repeat"
    chosen = "the first" if plan.survey == 1 else f"the first {plan.survey}"
    return f"{plan.repeats} repeats, {chosen} to choose by, the others to compare"


def _text(text: str) -> str:
    return escaped([text])[0]


def _code(text: str) -> str:
    return printable(text, 60).replace("`", "'")
