"""Data sets and their versions in the API: reading, uploading, and new versions from old ones."""

from datasets.api import changes, reading, uploading  # noqa: F401 - they add their addresses to the router
from datasets.api.routes import router

__all__ = ["router"]
