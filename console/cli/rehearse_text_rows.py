"""The rows that a rehearsal's Markdown and its table in the terminal have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from console.cli.figures_text import NONE, printable, rate
from console.cli.rehearse_text_words import amount, k_shares, ratio, seconds
from store.rehearsal.records import FallbackVerdict
from store.rehearsal.result_records import Estimate, Percentiles, RehearsalResult, SpecTax


def by_phase(
    result: RehearsalResult, figure: str, ratio: Callable[[Estimate | None], str] = ratio
) -> tuple[list[str], list[list[str]]]:
    """Arms × phases, and the whole pass, of `speedup` or `busy`. The baseline's speedup is 1 by definition."""
    phases = [None, *range(len(result.phases))]
    rows = []
    for arm in result.arms:
        cells = []
        for phase in phases:
            part = result.part(arm, phase)
            if figure == "busy":
                cells.append(amount(part.busy if part else None))
            else:
                cells.append("1" if arm == result.baseline else ratio(part.speedup if part else None))
        rows.append([arm, *cells])
    return ["arm", "whole pass", *(printable(phase.label) for phase in result.phases)], rows


def shared(value: int, whole: int) -> str:
    """`12 (3%)`."""
    return f"{value} ({value / whole:.0%})" if whole and value else str(value)


def percentile(of: Percentiles | None, name: str) -> str:
    return NONE if of is None else seconds(getattr(of, name))


def whole_pass(result: RehearsalResult) -> tuple[list[str], list[list[str]]]:
    """One row an arm, all workloads of all phases."""
    header = [
        "arm",
        "requests",
        "errors",
        "misses",
        "goodput",
        f"over {result.baseline}",
        "E2E p50",
        "p99",
        "TTFT p50",
        "p99",
        "TPOT p50",
    ]
    header += ["waiting p50", "p99", "α", "AL", "waste", "K"]
    rows = []
    for arm in result.arms:
        part = result.part(arm)
        if part is None:
            continue
        seen = part.drafting
        rows.append(
            [
                arm, str(part.requests), str(sum(part.errors.values())), shared(part.misses, part.requests),
                amount(part.goodput), "1" if arm == result.baseline else ratio(part.goodput_gain),
                percentile(part.e2e, "p50"), percentile(part.e2e, "p99"),
                percentile(part.ttft, "p50"), percentile(part.ttft, "p99"), percentile(part.tpot, "p50"),
                percentile(part.waiting, "p50"), percentile(part.waiting, "p99"), rate(seen.alpha if seen else None),
                rate(seen.mean_acceptance_length if seen else None), rate(seen.waste_ratio if seen else None),
                k_shares(seen),
            ]
        )  # fmt: skip
    return header, rows


def fewer_repeats(result: RehearsalResult) -> str | None:
    """Says of which arms amounts can't be held beside the others': they met other requests. Ratios are in pairs."""
    repeats = {arm: {one.repeat for one in result.passes if one.arm == arm} for arm in result.arms}
    every = set().union(*repeats.values())
    lacking = [arm for arm, met in repeats.items() if met != every]
    if not lacking:
        return None
    return (
        f"{', '.join(lacking)} did not meet every repeat, so not the same requests: compare by ratios, which are taken "
        "in the repeats that both arms met."
    )


def by_workload(result: RehearsalResult) -> tuple[list[str], list[list[str]]]:
    header = ["workload", "arm", "misses", "goodput", "E2E p50", "p99", "α", "speedup"]
    rows = []
    for mix in result.plan.mix:
        for arm in result.arms:
            part = result.part(arm, None, mix.name)
            if part is not None:
                rows.append(
                    [
                        printable(mix.name), arm, shared(part.misses, part.requests), amount(part.goodput),
                        percentile(part.e2e, "p50"), percentile(part.e2e, "p99"),
                        rate(part.drafting.alpha if part.drafting else None),
                        "1" if arm == result.baseline else ratio(part.speedup),
                    ]
                )  # fmt: skip
    return header, rows


def held(result: RehearsalResult, ratio: Callable[[Estimate | None], str] = ratio) -> tuple[list[str], list[list[str]]]:
    """Arms that change K against the best and the worst fixed one, by phase."""
    header = ["phase", "arm", "best fixed", "tok/s over it", "holds", "busy tok/s", "E2E", "worst", "tok/s over it"]
    rows = []
    for one in result.holding:
        label = "whole pass" if one.phase is None else printable(result.phases[one.phase].label)
        verdict = "not told" if one.holds is None else "yes" if one.holds else "NO"
        rows.append(
            [
                label, one.arm, one.best, ratio(one.against_best), verdict, ratio(one.busy),
                ratio(one.e2e), one.worst or NONE, ratio(one.against_worst),
            ]
        )  # fmt: skip
    return header, rows


def tax_sentence(tax: SpecTax | None) -> str | None:
    if tax is None or (tax.step_time is None and tax.busy is None):
        return None
    parts = []
    if tax.step_time is not None:
        parts.append(f"a step takes {ratio(tax.step_time)} times as long with as many sequences running")
    if tax.busy is not None:
        parts.append(f"busy tokens/s are {ratio(tax.busy)} of those without")
    return f"Spec tax, K = 0 against an engine without speculation: {', '.join(parts)}."


def fallback_sentences(found: FallbackVerdict) -> Iterator[str]:
    held = ", ".join(map(str, found.executed)) or NONE
    verdict = "passed" if found.passed else "FAILED"
    yield f"{verdict}: K {held} executed, {found.transitions} changes of K, {found.steps} steps judged"
    if found.acceptance_before is not None or found.acceptance_after is not None:
        before, after = rate(found.acceptance_before), rate(found.acceptance_after)
        steps = " and ".join(map(str, found.draft_steps))
        yield (f"acceptance of the same {found.prompts} prompts {before} before, {after} after (n {steps} draft steps)")
    yield from (printable(failure, 300) for failure in found.failures)
