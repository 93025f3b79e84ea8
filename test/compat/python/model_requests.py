"""The requests of Leat's model agents, in the file LEAT_REQUESTS, against the types of the official clients. ../requests_test.go runs it.

The types of OpenAI and Anthropic are typed dictionaries, which accept unknown keys unless their configuration says otherwise, and whose lists are
checked only when they are read. Those of Ollama accept unknown keys."""

import json
import os
import sys

from anthropic.types import message_create_params
from google.genai import types as gemini
from ollama import _types as ollama
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

for name, module in list(sys.modules.items()):
    if name.startswith(("openai.types", "anthropic.types")):
        for cls in vars(module).values():
            if is_typeddict(cls) and cls.__annotations__:
                cls.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def read(value):
    if isinstance(value, dict):
        for v in value.values():
            read(v)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for v in value:
            read(v)


# The adapters must live as long as the lists that are read.
anthropic = TypeAdapter(message_create_params.MessageCreateParamsNonStreaming)
chat = TypeAdapter(completion_create_params.CompletionCreateParamsStreaming)
responses = TypeAdapter(response_create_params.ResponseCreateParamsStreaming)


def check(kind, request):
    if kind == "anthropic":
        assert request.pop("stream")
        read(anthropic.validate_python(request))
    elif kind == "openai":
        read(chat.validate_python(request))
    elif kind == "responses":
        # The type of a message of the model wants an id, which only a stored response has. The API needs none.
        request["input"] = [i for i in request["input"] if i.get("role") != "assistant"]
        read(responses.validate_python(request))
    elif kind == "gemini":
        TypeAdapter(list[gemini.Content]).validate_json(json.dumps(request.pop("contents")))
        TypeAdapter(list[gemini.Tool]).validate_json(json.dumps(request.pop("tools")))
        assert not request, request
    elif kind == "ollama":
        ollama.ChatRequest.model_validate(request)


for kind, requests in json.load(open(os.environ["LEAT_REQUESTS"])).items():
    for request in requests:
        try:
            check(kind, request)
        except Exception as e:
            raise AssertionError(f"{kind}: {json.dumps(request)}") from e
