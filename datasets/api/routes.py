"""The router of this package: one, since an address's methods must be on the same one."""

from __future__ import annotations

from ninja import Router

router = Router()

UPLOAD = "datasets_upload"
"""The name of the address of data sets, whose POST takes files (apps.py)."""
