"""Rows fall into the bucket their labels promise, at every edge."""

from __future__ import annotations

import numpy as np
import pytest

from store.buckets import OTHER, UNTAGGED, BucketBook, Edges, TagBook, model_version, short_version
from tests.store.builders import T0, engine

EDGES = Edges()


@pytest.mark.parametrize(
    ("context", "label"),
    [(0, "0-512"), (511, "0-512"), (512, "512-2048"), (2048, "2048-8192"), (32767, "8192-32768"), (32768, "32768+")],
)
def test_contexts_are_half_open(context: int, label: str) -> None:
    assert EDGES.context_label(context) == label
    book = BucketBook()
    klass = book.class_of("e0", "code", "0", "m")
    (bucket,), _ = book.buckets(np.array([klass]), np.array([context]))
    assert book.names[int(bucket)] == ("e0", "code", label, "0", "m")


@pytest.mark.parametrize(
    ("temperature", "label"),
    [
        (0.0, "0"),
        (0.001, "(0,0.5]"),
        (0.5, "(0,0.5]"),
        (0.51, "(0.5,1]"),
        (1.0, "(0.5,1]"),
        (1.01, ">1"),
        (None, "unknown"),
    ],
)
def test_temperatures_close_at_the_upper_edge(temperature: float | None, label: str) -> None:
    assert EDGES.temperature_label(temperature) == label


def test_labels_follow_configured_edges() -> None:
    edges = Edges(context=(1024,), temperature=(0.0, 0.7))
    assert edges.context_labels() == ["0-1024", "1024+"]
    assert edges.temperature_labels() == ["0", "(0,0.7]", ">0.7"]


def test_the_sixty_fifth_tag_is_other_until_a_tag_was_idle_for_an_hour() -> None:
    tags = TagBook()
    for number in range(64):
        assert tags.place(f"t{number}", T0 + number) == f"t{number}"
    assert tags.place("late", T0 + 100) == OTHER
    assert tags.place("t5", T0 + 200) == "t5"
    assert tags.place("late", T0 + 3600) == "late"
    assert tags.place("t0", T0 + 3600) == OTHER, "t0 was the idlest and gave its place up"


def test_configured_tags_always_have_a_place() -> None:
    tags = TagBook(["mine"], limit=2)
    assert tags.place("first", T0) == "first"
    assert tags.place("second", T0) == OTHER
    assert tags.place("mine", T0) == "mine"


def test_no_tag_and_an_empty_tag_are_untagged() -> None:
    assert TagBook().place(None, T0) == UNTAGGED
    assert TagBook().place("", T0) == UNTAGGED


def test_a_model_version_names_target_drafter_method_and_vllm() -> None:
    version = model_version(engine(target="org/big@r1", drafter="org/head@r2", method="eagle3"))
    assert version == "org/big@r1 | org/head@r2 | eagle3 | vllm 0.32.0"
    assert short_version(version) == "big + head"
