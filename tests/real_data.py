"""Locate the real data sets on machines that have them; the repository contains none."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[1] / "../shared/data/real"


def real_data(name: str) -> Path:
    """Path of a real data file; skip the test if it is missing. EVALSITE_REAL_DATA overrides the folder."""
    path = Path(os.environ.get("EVALSITE_REAL_DATA", _BESIDE)) / name
    if not path.exists():
        pytest.skip(f"the real data set {name} is not on this machine")
    return path
