"""Loads everything that a worker may need, because a worker cannot open files."""

import codecs
import contextlib
import hashlib
import importlib
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from importlib.machinery import ModuleSpec
from types import ModuleType

from judging.core.sandbox.allowed_imports import ENCODINGS, IMPORTABLE, LAZY
from judging.core.sandbox.scripts import LoadedScript, forget
from judging.core.sandbox.templates import Renderer
from judging.core.sandbox.wire import Failed

# So that the interpreter specialises its code here rather than in the memory pages of each worker.
_TIMES = 8
_SCRIPT = """
def {kind}(data, resp, **kwargs):
    resp["length"] = len(resp.content)
    print(data.question)
    return data.nothing if data.fails else True
"""
_EVERY_BRANCH = (
    "{% for i in [1] %}{{ i|string|upper }}{% else %}{{ loop }}{% endfor %}{{ {'a': data}|tojson }}"
)


class NothingMore:
    """The only remaining finder: modules that are not loaded yet cannot be imported."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        raise ModuleNotFoundError(f"No module named {name!r} here", name=name)


def import_all() -> None:
    """Import the modules, trigger their lazy imports, and then block every other import."""
    for name in sorted(IMPORTABLE) + list(LAZY):
        importlib.import_module(name)
    for encoding in ENCODINGS:
        codecs.lookup(encoding)
    for algorithm in sorted(hashlib.algorithms_guaranteed):
        hashlib.new(algorithm)
    datetime.strptime("2000-01-01", "%Y-%m-%d").astimezone()
    time.localtime()
    for _ in range(_TIMES):
        _render_once()
        _call_once()
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [NothingMore]


def _render_once() -> None:
    options = {"undefined": "lenient", "most": 1000}
    for source in (_EVERY_BRANCH, "{{ data.x / 0 }}", "{% if %}"):
        with contextlib.suppress(Failed):
            renderer = Renderer({"kind": "preview", "source": source, "options": options})
            renderer.answer(b'{"data":{"x":1},"response":{}}')


def _call_once() -> None:
    out, err = sys.stdout, sys.stderr
    for kind in ("preprocess", "postprocess"):
        job = {"kind": kind, "source": _SCRIPT.format(kind=kind), "options": {"most": 1000, "printed": 1000}}
        script = LoadedScript(job)
        for fails in (b"true", b"false"):
            script.answer(b'{"data":{"fails":%s,"messages":[{}]},"resp":{}}' % fails)
    sys.stdout, sys.stderr = out, err
    forget()
