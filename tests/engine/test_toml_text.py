"""TOML whose numbers can be counted and printed."""

from __future__ import annotations

import pytest

from engine.toml_text import parse_toml


def test_whole_numbers_of_64_bits_are_taken() -> None:
    assert parse_toml(f"a = [{2**63 - 1}, {-(2**63)}]") == {"a": [2**63 - 1, -(2**63)]}


@pytest.mark.parametrize(
    "text",
    [f"a = {2**63}", "[b]\na = [{c = -0}, 0x" + "f" * 4305 + "]", "a = " + "9" * 5000, "a", "a = " + "[" * 3000],
    ids=["bits", "nested", "digits", "none", "deep"],
)
def test_what_is_no_toml_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as refused:
        parse_toml(text)
    assert len(str(refused.value)) < 200
