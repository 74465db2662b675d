"""What `manage.py serve` adds with DEMO_JUDGE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evalsite.hooks import Hook

if TYPE_CHECKING:
    from evalsite.supervisor import Child

preparations: Hook[Callable[[], Child]] = Hook("evalsite.demo.preparations")
"""Each creates sample data and returns the process that this needs, before the site starts."""
when_ready: Hook[Callable[[], None]] = Hook("evalsite.demo.when_ready")
"""Called once the site responds."""
