"""What `manage.py serve` adds with DEMO_JUDGE. The apps register it in AppConfig.ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsite.supervisor import Child

preparations: list[Callable[[], Child]] = []
"""Each creates sample data and returns the process that this needs, before the site starts."""
when_ready: list[Callable[[], None]] = []
"""Called once the site responds."""
