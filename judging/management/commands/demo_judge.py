"""manage.py demo_judge: run the demo judge, which needs no model, as a standalone server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite.supervisor import end_with_parent
from judging.core.judges.demo import demo_server
from judging.core.judges.scripted import serve_forever
from judging.sample_files import written_replies


class Command(BaseCommand):
    help = (
        "Serve the demo judge: an OpenAI-compatible API with replies written for the sample; it judges anything else "
        "by comparing characters."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001)

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        end_with_parent()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve_forever(demo_server(written_replies()), host, port))
