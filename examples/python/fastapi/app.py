"""A web application with an agent behind it: it sends a user's questions to Leat, and streams the answers to the browser.

Each request carries the user's own token, which Leat checks, so that users see their own conversations only. Run it with
``uvicorn app:app``.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from leat_client import Answer, AsyncAnswerStream, AsyncClient, LeatError
from pydantic import BaseModel

LEAT_URL = os.environ.get("LEAT_URL", "http://127.0.0.1:31337")

PAGE = """<!doctype html>
<meta charset="utf-8"><title>Ask</title>
<form><input name="question" aria-label="Question" placeholder="What is 12 * 7?" autofocus> <button>Ask</button></form>
<pre></pre>
<script>
const output = document.querySelector("pre");
document.querySelector("form").onsubmit = async (e) => {
  e.preventDefault();
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem("token"); // of your own login
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = JSON.stringify({ question: e.target.question.value });
  const response = await fetch("ask", { method: "POST", headers, body });
  const lines = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", piece; !(piece = await lines.read()).done;) {
    const complete = (rest + piece.value).split("\\n");
    rest = complete.pop();
    for (const line of complete) {
      const { text, error } = JSON.parse(line);
      output.textContent = error ?? text;
    }
  }
};
</script>
"""


class Question(BaseModel):
    question: str
    conversation: str | None = None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # The connections to Leat are shared by all users; their tokens are not.
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as http:
        app.state.http = http
        yield


app = FastAPI(lifespan=lifespan)


def client_of(request: Request) -> AsyncClient:
    """Return a client with the token of the request's user."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    # An empty token, rather than none, keeps the server's own token out of users' requests.
    return AsyncClient(LEAT_URL, token=token if scheme.lower() == "bearer" else "", http=request.app.state.http)


@app.get("/", response_class=HTMLResponse)
async def page() -> str:
    return PAGE


@app.post("/ask")
async def ask(question: Question, request: Request) -> StreamingResponse:
    client = client_of(request)
    conversation = client.conversation(question.conversation) if question.conversation else await client.create()
    stream = conversation.ask(question.question)
    # The message is sent here, so that a refusal still becomes the status of the response.
    await stream.__aenter__()
    return StreamingResponse(lines(stream, conversation.id), media_type="application/x-ndjson")


async def lines(stream: AsyncAnswerStream, conversation: str) -> AsyncIterator[str]:
    """Return the growing answer, a line for each state. A slow browser gets fewer lines, and the whole text in the last one."""
    async with stream:
        try:
            async for answer in stream:
                yield line_of(answer, conversation)
        except LeatError as err:
            yield json.dumps({"error": err.message}) + "\n"


def line_of(answer: Answer, conversation: str) -> str:
    document: Mapping[str, object] = {"conversation": conversation, "text": answer.text, "outcome": answer.turn.outcome}
    return json.dumps(document) + "\n"


@app.exception_handler(LeatError)
async def refuse(_: Request, error: LeatError) -> JSONResponse:
    """Pass a refusal on. Failures of the gateway are those of a server behind this one."""
    status = error.status if 400 <= error.status < 500 else 502
    return JSONResponse({"error": error.message, "reason": error.reason}, status)
