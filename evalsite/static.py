"""Static files: hashed and compressed names once collected, plain names before (tests, development)."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # (has no types)
    """Uses plain names without a manifest; finders then serve the files."""

    manifest_strict = False
    support_js_module_import_aggregation = True  # our modules import each other by relative names

    def stored_name(self, name: str) -> str:
        return str(super().stored_name(name)) if self.hashed_files else name
