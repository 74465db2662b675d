from collections.abc import Iterator

import pytest

from judging.core.jail.job import Layer, Limits
from judging.core.jail.pool import Jail

SMALL = Limits(seconds=0.2, memory_mb=128, output_kb=64)
WITHOUT: dict[str, frozenset[Layer]] = {
    "every wall": frozenset(),
    "no namespaces": frozenset({"namespaces"}),
    "seccomp alone": frozenset({"namespaces", "landlock"}),
}


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    with Jail(SMALL) as jail:
        yield jail


@pytest.fixture(scope="session", params=WITHOUT.values(), ids=WITHOUT.keys())
def each_jail(request: pytest.FixtureRequest) -> Iterator[Jail]:
    """The same jail with ever fewer walls: seccomp alone must already refuse every attempt."""
    with Jail(SMALL, without=request.param) as jail:
        yield jail
