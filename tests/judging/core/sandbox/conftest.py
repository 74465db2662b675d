from collections.abc import Iterator

import pytest

from judging.core.sandbox.job import Layer, SandboxLimits
from judging.core.sandbox.pool import Sandbox

SMALL = SandboxLimits(seconds=0.2, memory_mb=128, output_kb=64)
WITHOUT: dict[str, frozenset[Layer]] = {
    "every layer": frozenset(),
    "no namespaces": frozenset({"namespaces"}),
    "seccomp alone": frozenset({"namespaces", "landlock"}),
}


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SMALL) as sandbox:
        yield sandbox


@pytest.fixture(scope="session", params=WITHOUT.values(), ids=WITHOUT.keys())
def each_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The sandbox with fewer and fewer layers: seccomp alone must already refuse every attempt."""
    with Sandbox(SMALL, without=request.param) as sandbox:
        yield sandbox
