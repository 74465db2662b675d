"""Loaded before Django's settings (pytest's -p in pyproject.toml): tests never touch anybody's data."""

import os
import tempfile
from pathlib import Path

_folder = tempfile.TemporaryDirectory(prefix="evalsite-tests-")  # removed when the process ends
os.environ["DATA_DIR"] = _folder.name
(Path(_folder.name) / "static").mkdir()
for _name in ("HOST", "PORT", "DEBUG", "HTTPS", "SECRET_KEY", "ALLOWED_HOSTS", "TIME_ZONE"):
    os.environ.pop(_name, None)
