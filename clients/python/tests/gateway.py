"""A real gateway, and a proxy in front of it that cuts connections."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).parents[3]


class Gateway:
    """A gateway on a free port, which can be killed and started again on the same data."""

    def __init__(self, program: Path, data: Path, agent: str = "demo?speed=0", token: str = "", **environment: str) -> None:
        self._program, self._data, self._token = program, data, token
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("LEAT_", "ELIZA_"))},
            "LEAT_AGENTS": agent, "LEAT_API_TOKEN": token, "LEAT_DRAIN": "1s", "LEAT_LOG_LEVEL": "error", **environment,
        }  # fmt: skip
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        port = urlsplit(self.url).port or 0
        command = [str(self._program), "serve", "--listen", f"127.0.0.1:{port}", "--data", str(self._data)]
        process = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        self._process = process
        for line in process.stdout:
            found = re.search(r"listens on (http://\S+)", line)
            if found:
                self.url = found[1]
                threading.Thread(target=process.stdout.read, daemon=True).start()
                return
        raise AssertionError("the gateway ended before it listened")

    def end(self, number: int) -> None:
        process = self._process
        assert process is not None
        process.send_signal(number)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGTERM)

    def get(self, path: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        response = httpx.get(self.url + path, headers=headers, timeout=60)
        response.raise_for_status()
        document: dict[str, Any] = response.json()
        return document

    def push(self, conversation: str, frames: Iterable[dict[str, Any]], dialect: str = "eliza-actions") -> dict[str, Any]:
        """Push an agent's stream while it is generated, and return its outcome."""

        def lines() -> Iterator[bytes]:
            for frame in frames:
                yield json.dumps(frame).encode() + b"\n"

        path = f"/api/conversations/{conversation}/turns?dialect={dialect}"
        response = httpx.post(self.url + path, content=lines(), timeout=None)
        response.raise_for_status()
        outcome: dict[str, Any] = json.loads(response.text.strip().splitlines()[-1])
        return outcome


class Proxy:
    """Forwards connections to a gateway and cuts each after a random number of the response's bytes, until it is mended."""

    def __init__(self, target: str, seed: int, mean: int) -> None:
        at = urlsplit(target)
        self._target = (at.hostname or "", at.port or 0)
        self._random = random.Random(seed)
        self._mean = mean
        self._is_mended = False
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def mend(self) -> None:
        self._is_mended = True

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for s in sockets:
            self._end(s)

    def _accept(self) -> None:
        workers: list[threading.Thread] = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                break
            budget = self._random.randrange(1, 2 * self._mean)
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            for arguments in ((client, server, None), (server, client, budget)):
                worker = threading.Thread(target=self._copy, args=arguments, daemon=True)
                worker.start()
                workers.append(worker)

    def _copy(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        try:
            while data := source.recv(65536):
                if budget is not None and not self._is_mended:
                    if len(data) >= budget:
                        sink.sendall(data[:budget])
                        self.cuts += 1
                        break
                    budget -= len(data)
                sink.sendall(data)
        except OSError:
            pass  # the other direction has ended the connection
        self._end(source)
        self._end(sink)

    def _end(self, s: socket.socket) -> None:
        with self._lock:
            if s not in self._sockets:
                return
            self._sockets.discard(s)
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has been reset by its peer
        s.close()
