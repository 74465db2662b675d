#!/usr/bin/env python
"""evalsite's command line; `manage.py help` lists the commands."""

import gc
import os
import signal
import sys

ENDED_BY_CTRL_C = ("serve", "worker")


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in ENDED_BY_CTRL_C:
        # Until it is handled. Python's exception is lost in callbacks, waits for SQLite, and is not raised at all in
        # a process that a shell started in the background, which ignores the signal.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    gc.disable()  # until all apps are imported (judging/apps.py): garbage collection took a sixth of the start
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a wrong setting: a sentence helps, a traceback does not
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
