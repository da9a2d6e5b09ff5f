"""Model versions on one screen are told apart by what differs, in few cells."""

from __future__ import annotations

from console.app.live.versions import telling

TARGET = "SmolLM2@87706b2011f07b7a:0.1.2:bfloat16:-"
GOOD = f"{TARGET} | head@04d46cfb0b38b300:-:bfloat16:- | eagle3 | vllm 0.32.0"


def told(*changed: tuple[str, str]) -> list[str]:
    versions = [GOOD, *(GOOD.replace(*change) for change in changed)]
    found = telling(versions)
    return [found[version] for version in versions]


def test_what_differs_is_shown_and_nothing_else() -> None:
    assert told(("0.32.0", "0.33.0")) == ["vllm 0.32.0", "vllm 0.33.0"]
    assert told(("head@", "head-noisy@")) == ["head", "head-noisy"]
    assert told(("04d46c", "999999")) == ["04d46c", "999999"]
    assert told((":-:bfloat16:- | eagle3", ":-:int8:- | eagle3")) == ["-:bfloat16:-", "-:int8:-"]
    assert told((TARGET, "Other@1234567890abcdef:0.1.2:bfloat16:-"), ("eagle3", "eagle")) == [
        "SmolLM2 eagle3", "Other eagle3", "SmolLM2 eagle",
    ]  # fmt: skip


def test_versions_of_another_form_are_shown_as_they_are() -> None:
    assert telling(["", "old", GOOD]) == {"": "", "old": "old", GOOD: GOOD}
    assert telling([GOOD, GOOD.replace(TARGET, "target")])[GOOD].startswith("SmolLM2@8770")
