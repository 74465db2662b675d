"""Where the real data sets are, on machines that have them; the repository holds none of them."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[1] / "../shared/data/real"


def real_data(name: str) -> Path:
    """The file of that name (its folder may be set by EVALSITE_REAL_DATA); skips the test where it is absent."""
    path = Path(os.environ.get("EVALSITE_REAL_DATA", _BESIDE)) / name
    if not path.exists():
        pytest.skip(f"the real data set {name} is not on this machine")
    return path
