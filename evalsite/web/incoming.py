"""Files of uploads in progress, in DATA_DIR/incoming."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadhandler import TemporaryFileUploadHandler

from evalsite.storage import unfinished


class LockedUploadHandler(TemporaryFileUploadHandler):
    """Locks the temporary file until it is closed, also by the end of the process."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        unfinished.lock(self.file)
