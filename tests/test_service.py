"""The service of the page on saving: a real server on this machine, with the code that the page shows."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import mercerless
from mercerless import KreinRidge, persistence

pytest.importorskip("skops")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs" / "saving.md"


@contextmanager
def service(folder):
    """The address of the running service."""
    code = re.search(r"```python\n(# service\.py.*?)```", PAGE.read_text(), re.DOTALL)[1]
    (folder / "service.py").write_text(code)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = str(Path(mercerless.__file__).parents[1])
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    address = f"http://127.0.0.1:{port}"
    try:
        limit = time.monotonic() + 60.0
        while True:
            try:
                urllib.request.urlopen(f"{address}/about").close()
                break
            except urllib.error.URLError:
                assert server.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def answer(address, path, content=None):
    """Status and content of an answer."""
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(
        f"{address}/{path}", data, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_service_of_the_page_predicts_and_raises(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KreinRidge().fit(X, X[:, 0])
    persistence.save(model, tmp_path / "model.skops")
    with service(tmp_path) as address:
        status, content = answer(address, "predict", {"rows": X[:4].tolist()})
        assert status == 200
        np.testing.assert_allclose(content["predictions"], model.predict(X[:4]), rtol=1e-9)
        status, content = answer(address, "predict", {"rows": [[1.0, 2.0, 3.0]]})
        assert status == 422
        assert "3 features" in content["detail"]
        status, content = answer(address, "about")
        assert status == 200
        assert content["input"]["columns"] == 2
