from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway import ROOT, Gateway
from leat_client import _backoff

StartGateway = Callable[..., Gateway]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gateway of this tree. LEAT_BIN names one that is built already."""
    if built := os.environ.get("LEAT_BIN"):
        return Path(built)
    if shutil.which("go") is None:
        pytest.skip("SKIPPED: install Go, or set LEAT_BIN to a built gateway")
    path = tmp_path_factory.mktemp("program") / "leat"
    subprocess.run(["go", "build", "-o", path, "./cmd/leat"], cwd=ROOT, check=True)
    return path


@pytest.fixture
def start_gateway(program: Path, tmp_path: Path) -> Iterator[StartGateway]:
    gateways: list[Gateway] = []

    def start(**options: str) -> Gateway:
        gateways.append(Gateway(program, tmp_path / f"data{len(gateways)}", **options))
        return gateways[-1]

    yield start
    for gateway in gateways:
        gateway.stop()


@pytest.fixture
def gateway(start_gateway: StartGateway) -> Gateway:
    return start_gateway()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts that are a tenth as long, for tests with many cuts."""
    monkeypatch.setattr(_backoff, "INITIAL", 0.02)
    monkeypatch.setattr(_backoff, "LONGEST", 0.2)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAT_URL", "LEAT_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
