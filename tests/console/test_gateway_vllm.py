"""What the gateway takes for granted about vLLM, held against vLLM's own request types and checks."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest

from console.gateway.plan import GENERATING
from console.gateway.unsupported import refused_with_speculation

CHAT = "/v1/chat/completions"


def _request_types() -> dict[str, Any]:
    from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
    from vllm.entrypoints.openai.chat_completion.protocol import BatchChatCompletionRequest, ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    return {
        CHAT: ChatCompletionRequest,
        CHAT + "/batch": BatchChatCompletionRequest,
        "/v1/completions": CompletionRequest,
        "/v1/responses": ResponsesRequest,
        "/v1/messages": AnthropicMessagesRequest,
    }


@pytest.mark.engine
def test_vllm_reads_vllm_xargs_on_every_path_whose_bodies_are_rewritten() -> None:
    types = _request_types()
    assert set(types) == GENERATING
    batch = types.pop(CHAT + "/batch")
    assert all("vllm_xargs" in kind.model_fields for kind in types.values())
    message = [{"role": "user", "content": "x"}]
    whole = batch(model="m", messages=[message], vllm_xargs={"workload": "code"})
    assert whole.to_chat_completion_request(message).vllm_xargs == {"workload": "code"}
    assert not {"min_p", "logit_bias"} & set(types["/v1/messages"].model_fields)


@pytest.mark.engine
def test_it_refuses_what_vllm_refuses_beside_speculation_and_nothing_else() -> None:
    from vllm.exceptions import VLLMValidationError

    request_type = _request_types()[CHAT]
    refusals = 0
    for min_p, logit_bias, temperature in itertools.product(
        (None, 0, 1e-6, 1e-5, 1.1e-5, 0.3, "0.3"), (None, {}, {"7": 1.0}), (None, 0, 9e-6, 1e-5, 0.8, "0")
    ):
        fields = {"min_p": min_p, "logit_bias": logit_bias, "temperature": temperature}
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        request = request_type(model="m", messages=[{"role": "user", "content": "x"}], **body)
        ours = bool(refused_with_speculation(CHAT, body.get))
        refusals += ours
        with pytest.raises(VLLMValidationError, match="speculative") if ours else contextlib.nullcontext():
            request.to_sampling_params(16, {})._validate_spec_decode(object())
    assert refusals
