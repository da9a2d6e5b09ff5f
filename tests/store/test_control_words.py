"""What a control changed, in words."""

import pytest

from store.control_words import changed, mode_words

STATIC = '{"mode":"static","k":4}'
SCHEDULE = '{"mode":"schedule","schedule":[[1,4,4],[5,32,1]]}'


@pytest.mark.parametrize(
    ("action", "workload", "before", "after", "said"),
    [
        ("begin", None, None, STATIC, "static:4"),
        ("mode", None, STATIC, SCHEDULE, "static:4 → schedule 1-4: 4, 5-32: 1"),
        ("cap", None, '{"cap":null}', '{"cap":2}', "none → 2"),
        ("fallback", None, '{"fallback":false}', '{"fallback":true}', "off → on"),
        ("k", "chat", '{"k":4}', '{"k":2}', "4 → 2"),
        ("lane", "chat", "{}", '{"lane":"vanilla"}', "speculative → vanilla"),
        ("fallback", "chat", '{"k":1}', '{"k":0,"fallback":true}', "fallback off → on, K 1 → 0"),
        ("undo", None, '{"cap":2}', '{"cap":null}', "cap 2 → none"),
        ("drill", None, None, '{"passed":true}', "passed on"),
        ("confirm", None, None, None, ""),
        ("mode", None, STATIC, '{"mode":"clairvoyant"}', "static:4 → clairvoyant"),
    ],
)
def test_no_operator_is_shown_the_record_itself(
    action: str, workload: str | None, before: str | None, after: str | None, said: str
) -> None:
    assert changed(action, workload, before, after) == said


def test_a_schedule_that_cannot_be_read_is_named() -> None:
    assert mode_words({"mode": "schedule", "schedule": [[2, 1, 4]]}) == "schedule"
