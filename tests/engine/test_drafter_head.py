"""The head against slow references: drafting one token after another with a cache, and torch's own loss."""

from __future__ import annotations

from typing import Any

import pytest

from engine.drafter.recipe import FULL

torch = pytest.importorskip("torch")


def small_shape() -> Any:
    from engine.drafter.head import Shape

    return Shape(
        hidden=24,
        inner=40,
        heads=4,
        key_heads=2,
        head_width=6,
        depths=3,
        draft_vocabulary=50,
        norm_eps=1e-5,
        rope_theta=10000.0,
    )


def _chain(head: Any, embedded: Any, states: Any, start: int, positions: int) -> list[Any]:
    """Draft `positions` tokens after place `start` as an engine does: whole prefix first, then one place at a time,
    each attending to the true places up to `start` and to the drafted ones before it."""

    hidden = head._combined(states[:, : start + 1])
    layer, attention = head.midlayer, head.midlayer.self_attn
    earlier: list[Any] = []
    hidden = layer(embedded[:, : start + 1], hidden, earlier)
    keys, values = earlier[0]
    outputs = [head.norm(hidden[:, -1])]
    last = hidden[:, -1:]
    for place in range(start + 1, start + positions):
        both = torch.cat([layer.input_layernorm(embedded[:, place : place + 1]), layer.hidden_norm(last)], dim=-1)
        # Rotary positions depend on the place: project a padded sequence and take its last place.
        padded = torch.cat([torch.zeros(1, place, both.shape[-1]), both], dim=1)
        query, key, value = (part[:, :, -1:] for part in attention._projected(padded))
        keys, values = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
        last = last + attention.o_proj(mixed.transpose(1, 2).flatten(2))
        last = last + layer.mlp(layer.post_attention_layernorm(last))
        outputs.append(head.norm(last[:, 0]))
    return outputs


def test_all_chains_at_once_equal_one_chain_after_another() -> None:
    from engine.drafter.head import Head

    torch.manual_seed(3)
    head = Head(small_shape()).eval()
    for parameter in head.parameters():  # larger than at the start of training, so that attention matters
        torch.nn.init.normal_(parameter, std=0.3)
    length, positions = 11, 4
    embedded, states = torch.randn(1, length, 24), torch.randn(1, length, 72)
    with torch.no_grad():
        together = head(embedded, states, positions)
        for start in range(length - positions):
            for position, output in enumerate(_chain(head, embedded, states, start, positions)):
                found = together[position][:, start + position]
                assert torch.allclose(found, output, atol=1e-4), (start, position)


def test_padding_on_the_right_changes_nothing() -> None:
    from engine.drafter.head import Head

    torch.manual_seed(4)
    head = Head(small_shape()).eval()
    embedded, states = torch.randn(1, 9, 24), torch.randn(1, 9, 72)
    longer = [torch.nn.functional.pad(values, (0, 0, 0, 5), value=7.0) for values in (embedded, states)]
    with torch.no_grad():
        for short, padded in zip(head(embedded, states, 3), head(*longer, 3), strict=True):
            assert torch.allclose(short, padded[:, :9], atol=1e-5)


def test_the_written_out_gradient_is_the_gradient() -> None:
    from engine.drafter.loss import cross_entropy

    torch.manual_seed(5)
    count, hidden, vocabulary = 700, 16, 40  # more than one piece
    outputs, weight = torch.randn(count, hidden), torch.randn(vocabulary, hidden) * 0.3
    wanted = torch.randn(count, vocabulary).softmax(-1)
    ours = [values.clone().requires_grad_() for values in (outputs, weight)]
    plain = [values.clone().requires_grad_() for values in (outputs, weight)]
    loss, drafts = cross_entropy(ours[0], ours[1], wanted)
    (loss * 3).backward()
    logits = plain[0] @ plain[1].T
    expected = -(wanted * logits.log_softmax(-1)).sum(-1).mean()
    (expected * 3).backward()
    assert loss.item() == pytest.approx(expected.item(), rel=5e-3)
    for found, right in zip(ours, plain, strict=True):  # bf16 arithmetic: two to three digits
        assert (found.grad - right.grad).norm() / right.grad.norm() < 0.02
    assert (drafts == logits.argmax(-1)).float().mean() > 0.97


def test_a_head_learns_a_sequence_that_can_be_foreseen() -> None:
    """States that hold the next token but one: the first draft position must become right everywhere."""
    from engine.drafter.head import Head
    from engine.drafter.loss import cross_entropy

    torch.manual_seed(6)
    head = Head(small_shape())
    optimiser = torch.optim.AdamW(head.parameters(), 5e-3)
    signs = torch.randn(50, 72)
    for _ in range(150):
        following = torch.randint(0, 50, (4, 12))
        output = head(torch.randn(4, 12, 24), signs[following], 1)[0].flatten(0, 1)
        wanted = torch.nn.functional.one_hot(following.flatten(), 50).float()
        loss, drafts = cross_entropy(output, head.lm_head.weight, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (drafts == following.flatten()).float().mean() > 0.95


def test_held_out_acceptance_counts_whole_prefixes() -> None:
    """A head that is always right at the first position and never at the second."""
    from engine.drafter.batches import Batch
    from engine.drafter.held_out import POSITIONS, _counts

    tokens = torch.arange(20)[None] % 7
    trained = torch.ones(1, 20, dtype=torch.bool)
    trained[:, -2:] = False

    class Pretend:
        def __init__(self) -> None:
            self.position = 0

        def __call__(self, embedded: Any, states: Any, positions: int) -> list[Any]:
            return [torch.full((1, 18), float(position)) for position in range(positions)]

        def lm_head(self, output: Any) -> Any:
            wanted = tokens[:, 2:] if output[0, 0] == 0 else (tokens[:, 2:] + 1) % 7
            return torch.nn.functional.one_hot(wanted, 7)

    class PretendTarget:
        @staticmethod
        def embedding() -> Any:
            return torch.zeros(7, 3)

    counts = _counts(Pretend(), PretendTarget(), torch.arange(7), Batch(tokens, torch.zeros(1, 20, 2), trained))  # type: ignore[arg-type]
    begun = 18 - POSITIONS + 1
    assert counts.tolist() == [begun, begun, 0, 0, 0]


def test_the_schedule_warms_up_and_comes_down() -> None:
    from engine.drafter.fit import _learning_rate, _positions

    rates = [_learning_rate(FULL, step) for step in range(FULL.steps + 1)]
    assert rates[0] < rates[FULL.warmup_steps - 1] == pytest.approx(FULL.learning_rate)
    assert rates[-1] == pytest.approx(FULL.learning_rate / 100)
    assert all(
        later <= earlier
        for earlier, later in zip(rates[FULL.warmup_steps :], rates[FULL.warmup_steps + 1 :], strict=False)
    )
    assert [_positions(FULL, step) for step in (0, FULL.steps)] == [1, 3]
