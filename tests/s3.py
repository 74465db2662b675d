"""An S3-compatible store over HTTP: moto's server, or the one given by EVALSITE_TEST_S3.

EVALSITE_TEST_S3 is `http://ACCESS_KEY:SECRET_KEY@host:port`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.files.storage import storages

from evalsite import env
from tests.starting import free_port, leashed

KEYS = ("bench-access", "bench-secret")
START_SECONDS = 300


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Yield the store's URL, including its keys."""
    if given := os.environ.get("EVALSITE_TEST_S3"):
        yield given
        return
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(leashed(command), **quiet)  # type: ignore[call-overload]
    try:
        _await(port)
        yield f"http://{KEYS[0]}:{KEYS[1]}@127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _await(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    pytest.fail("moto's server did not start")


def environment(address: str) -> dict[str, str]:
    """Settings of a site with a new bucket name in that store. The bucket is not created yet."""
    url = urlsplit(address)
    return {
        "FILES": "s3",
        "S3_ENDPOINT_URL": f"{url.scheme}://{url.hostname}:{url.port or 443}",
        "S3_BUCKET": f"evalsite-{uuid.uuid4().hex[:12]}",
        "S3_ACCESS_KEY": url.username or "",
        "S3_SECRET_KEY": url.password or "",
    }


def use(settings: Any, given: dict[str, str], data_dir: Path) -> None:
    """Configure this process as a machine of that site."""
    config = env.read({**given, "DATA_DIR": str(data_dir)})
    found = {
        name: getattr(config, name) for name in ("files", *(key.lower() for key in given if "S3" in key))
    }
    settings.CONFIG = replace(settings.CONFIG, **found)
    settings.STORAGES = {**settings.STORAGES, **env.storages(config)}
    settings.DATA_DIR = data_dir


def make_bucket() -> None:
    storages["kept"].bucket.create()


def names() -> list[str]:
    """Sorted keys of the bucket's objects."""
    return sorted(one.key for one in storages["kept"].bucket.objects.all())
