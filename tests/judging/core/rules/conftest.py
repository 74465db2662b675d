from collections.abc import Iterator

import pytest

from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(seconds=0.5, memory_mb=128, output_kb=64)) as sandbox:
        yield sandbox
