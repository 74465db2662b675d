"""manage.py describe_api: write the API's description to the repository, or check that it is up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

FILE = Path(__file__).resolve().parents[2] / "api" / "openapi.json"


class Command(BaseCommand):
    help = "Write evalsite/api/openapi.json from the code; with --check, fail if it differs."

    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing, fail if it differs")

    def handle(self, *, check: bool, **options: Any) -> None:
        from evalsite.api.site import description_text  # imports all addresses

        text = description_text()
        if check and FILE.read_text(encoding="utf-8") != text:
            raise CommandError(f"{FILE} is not up to date; run manage.py describe_api.")
        if not check:
            FILE.write_text(text, encoding="utf-8")
