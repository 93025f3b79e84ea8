"""The README's snippets and the examples, run against a gateway."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import nbformat
import pytest

from gateway import ROOT, Gateway

EXAMPLES = ROOT / "examples" / "python"
README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", README, re.DOTALL)


def test_readme_has_snippets() -> None:
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize(("source", "output"), SNIPPETS, ids=lambda s: "" if "\n" in s else None)
def test_readme(gateway: Gateway, source: str, output: str) -> None:
    source = source.replace("http://127.0.0.1:31337", gateway.url)
    run = subprocess.run([sys.executable, "-W", "error", "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    if output:
        assert run.stdout == output


def test_notebook(gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The notebook is valid, and its cells run in their order, as a kernel runs them: in one loop, with await at the top level."""
    notebook: Any = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    monkeypatch.setenv("LEAT_URL", gateway.url)
    names: dict[str, Any] = {"__name__": "__main__"}

    async def run() -> None:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                code = compile(cell.source, f"cell {cell.id}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                result = eval(code, names)
                if inspect.isawaitable(result):
                    await result

    asyncio.run(run())
    output = capsys.readouterr().out
    assert "**12 * 7 = 84**" in output
    assert "May I publish the results?" in output
    assert names["answer"].turn.outcome == "completed"
    assert names["lengths"] == sorted(names["lengths"])


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    def load(url: str) -> ModuleType:
        monkeypatch.setenv("LEAT_URL", url)
        spec = importlib.util.spec_from_file_location("fastapi_example", EXAMPLES / "fastapi" / "app.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_fastapi(start_gateway: Callable[..., Gateway], application: Callable[[str], ModuleType]) -> None:
    token = "the-secret-token-of-the-tests"
    module = application(start_gateway(token=token).url)

    async def run() -> None:
        transport = httpx.ASGITransport(app=module.app)
        async with module.lifespan(module.app), httpx.AsyncClient(transport=transport, base_url="http://app") as browser:
            assert "<form>" in (await browser.get("/")).text
            refused = await browser.post("/ask", json={"question": "12 * 7"})
            assert (refused.status_code, refused.json()["reason"]) == (401, "unauthorized")
            headers = {"Authorization": f"Bearer {token}"}
            response = await browser.post("/ask", json={"question": "12 * 7"}, headers=headers)
            last = json.loads(response.text.splitlines()[-1])
            assert last["outcome"] == "completed"
            assert "**12 * 7 = 84**" in last["text"]
            question = {"question": "What did I say?", "conversation": last["conversation"]}
            response = await browser.post("/ask", json=question, headers=headers)
            assert "12 * 7" in json.loads(response.text.splitlines()[-1])["text"]

    asyncio.run(run())
