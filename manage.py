#!/usr/bin/env python
"""evalsite's command line; `manage.py help` lists the commands. Installed from a wheel, it is called `evalsite`."""

import gc
import os
import signal
import sys
from pathlib import Path

ENDED_BY_CTRL_C = ("serve", "worker")


def main() -> None:
    folder = str(Path(__file__).resolve().parent)
    if folder not in sys.path:  # installed: before packages of the same names, such as another `datasets`
        sys.path.insert(0, folder)
    from evalsite import __version__, command_line

    try:
        arguments = [sys.argv[0], *command_line.take_options(sys.argv[1:], os.environ)]
    except command_line.UsageError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    if arguments[1:] in (["version"], ["--version"]):
        sys.stdout.write(f"evalsite {__version__}\n")
        return
    if arguments[1:2] and arguments[1] in ENDED_BY_CTRL_C:
        # Until it is handled. Python's exception is lost in callbacks, waits for SQLite, and is not raised at all in
        # a process that a shell started in the background, which ignores the signal.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if command_line.IS_INSTALLED:  # not the settings of another Django project, whose shell this may be
        os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    gc.disable()  # until all apps are imported (judging/apps.py): garbage collection took a sixth of the start
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(arguments)
    except ImproperlyConfigured as error:  # a wrong setting: a sentence helps, a traceback does not
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    finally:
        gc.freeze()  # to search all modules for garbage once more took a fifth of a short command's time


if __name__ == "__main__":
    main()
