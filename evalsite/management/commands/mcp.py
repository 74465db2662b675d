"""manage.py mcp: the site's tools for an agent on this machine, by the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalsite.api.evalsite_client import Client

WRONG_USAGE = 2


class Command(BaseCommand):
    help = (
        "Serve the site EVALSITE_URL, with the token EVALSITE_TOKEN, to an agent over standard input and output "
        "(Model Context Protocol)."
    )

    requires_system_checks = ()

    def handle(self, **options: Any) -> None:
        try:
            from evalsite.mcp.stdio import serve
        except ImportError:
            text = "This command needs the extra “mcp”: uv tool install 'evalsite[mcp] @ FILE.whl'."
            raise CommandError(text, returncode=WRONG_USAGE) from None
        missing = [name for name in ("EVALSITE_URL", "EVALSITE_TOKEN") if not os.environ.get(name)]
        if missing:
            text = f"{' and '.join(missing)} must be set: the site's address, and an access token for it."
            raise CommandError(text, returncode=WRONG_USAGE)
        url, token = os.environ["EVALSITE_URL"], os.environ["EVALSITE_TOKEN"]
        serve(lambda: Client(url, token, patience=30))
