"""manage.py serve: run the whole site on one machine, under one supervisor."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.urls import get_resolver

from evalsite import demo, env
from evalsite.accounts.models import User
from evalsite.accounts.services import local_administrator_create
from evalsite.command_line import IS_INSTALLED, advice, start_advice
from evalsite.env import Config
from evalsite.storage import data_dir, unfinished
from evalsite.supervisor import (
    PARENT,
    Child,
    Supervisor,
    end_with_parent,
    manage,
    queue_workers,
    wait_until_released,
)
from evalsite.tasks import workers

PORTS = range(8000, 8020)  # tried in this order if none is set; only if installed from a wheel


class Command(BaseCommand):
    help = "Start the site: web, workers and (with DEMO_JUDGE) the demo judge and sample project. Ctrl-C stops it."

    # The checks import all views, so they run after the site has started.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--web-only", action="store_true", help="run only the web process, in the foreground"
        )
        parser.add_argument("--no-sample", action="store_true", help="skip the sample projects")
        # Taken out of the command line before the settings are read (evalsite/command_line.py).
        parser.add_argument(
            "--data", metavar="DIR", help="the data folder, as DATA_DIR; every command takes it"
        )
        parser.add_argument("--host", metavar="H", help="the address to listen on, as HOST")
        parser.add_argument("--port", metavar="N", help="the port to listen on, as PORT")

    def handle(self, *, web_only: bool, no_sample: bool, **options: Any) -> None:
        end_with_parent()
        config = settings.CONFIG
        if web_only and PARENT in os.environ:
            get_resolver().url_patterns  # noqa: B018 - imports all views, while the parent prepares the data folder
            wait_until_released()
            serve_web(config.host, config.port)
            return
        if IS_INSTALLED and not os.environ.get("PORT"):
            config = replace(config, port=free_port(config.host))
            os.environ["PORT"] = str(config.port)  # for the web process
        refuse_taken_port(config.host, config.port)
        if web_only:
            prepare()
            serve_web(config.host, config.port)
            return
        sample = config.demo_judge and not no_sample
        web = Child("web", manage("serve", "--web-only"), behind_pages=False)
        with web.held():
            prepare()
            claim = data_dir.claim()
            judges = [prepare_sample() for prepare_sample in demo.preparations] if sample else []
        with claim:
            self.supervise([*judges, web, *queue_workers(workers.QUEUES)], config, sample=sample)

    def supervise(self, children: list[Child], config: Config, *, sample: bool) -> None:
        """Run everything after the preparations; returns when all processes have ended."""
        threading.Thread(target=self.when_ready, args=(config, sample), daemon=True).start()
        Supervisor(children).run()

    def when_ready(self, config: Config, sample: bool) -> None:
        """Work that starts once the site responds, and runs alongside it."""
        self.say_when_ready(config.host, config.port, config.base_path)
        if sample:
            for call in demo.when_ready:
                call()

    def say_when_ready(self, host: str, port: int, base_path: str) -> None:
        """Print the site's URL once it responds."""
        shown = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}{base_path}/"
        while not answers(address):
            time.sleep(0.1)
        self.stdout.write(f"\n  evalsite is ready: {address}\n  Data folder: {settings.DATA_DIR}")
        self.stdout.write(f"  Press Ctrl-C to stop.\n{who_gets_in()}")
        if not settings.LOCAL_MODE and not any(
            user.has_usable_password() for user in User.objects.all()[:100]
        ):
            command = advice(settings.DATA_DIR, "set_password", "NAME")
            self.stdout.write(f"  Nobody can sign in yet. Create an administrator:\n    {command}\n")
        self.stdout.flush()
        self.check(fail_level=checks.CRITICAL)
        # Reports missing sandbox isolation on this machine; the site runs anyway.
        self.check(tags=["sandbox"], include_deployment_checks=True, fail_level=checks.CRITICAL)


def prepare() -> None:
    """Prepare the data folder and the static files. Raises CommandError if the site must not start."""
    data_dir.prepare_to_start()
    if settings.LOCAL_MODE:
        local_administrator_create()
    data_dir.collect_static()


def who_gets_in() -> str:
    """Explain local mode at startup."""
    if not settings.LOCAL_MODE:
        return ""
    return (
        "  Anyone with an account on this machine can open it as administrator, without a password.\n"
        "  To require a password, start with REQUIRE_SIGN_IN=1.\n"
    )


def serve_web(host: str, port: int) -> None:
    """Run the web server with the WSGI application until it is stopped."""
    env.for_pages(connections["default"].settings_dict)  # each thread opens its own connection
    from evalsite.web import server  # only in the web process, to keep its parent small
    from evalsite.wsgi import application

    unfinished.delete_left(settings.DATA_DIR)
    server.run(application, host, port, limits=server.ServerLimits(), at_thread_end=connections.close_all)


def free_port(host: str) -> int:
    """The first port of PORTS that is available. Raises CommandError if none is."""
    for port in PORTS[:-1]:
        with suppress(CommandError):
            refuse_taken_port(host, port)
            return port
    refuse_taken_port(host, PORTS[-1])
    return PORTS[-1]


def refuse_taken_port(host: str, port: int) -> None:
    """Raise CommandError with advice if the port is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}, port {port}: {error.strerror or error}. {_advice(error, port)}"
            ) from None


def _advice(error: OSError, port: int) -> str:
    if error.errno not in (errno.EADDRINUSE, errno.EACCES):
        return "HOST must be an address of this machine, such as 127.0.0.1 (this machine alone) or 0.0.0.0 (all)."
    other = port + 10 if 1024 <= port <= 65525 else 8010
    return f"Choose another port, for example: {start_advice(PORT=str(other))}"


def answers(address: str) -> bool:
    """Whether an HTTP server responds at the address."""
    try:
        with urllib.request.urlopen(address + "healthz", timeout=2):  # noqa: S310
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
