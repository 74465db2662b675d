from collections.abc import Iterator

import pytest

from judging.core.jail.job import Limits
from judging.core.jail.pool import Jail


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    with Jail(Limits(seconds=0.5, memory_mb=128, output_kb=64)) as jail:
        yield jail
