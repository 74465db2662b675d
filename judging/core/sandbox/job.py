"""Jobs and outcomes of the sandbox, their limits, and the errors raised if it cannot run.

SandboxError
├── SandboxRefused      this machine isolates less than the configured minimum
└── SandboxBroken       its process cannot be started, or ended unexpectedly; not caused by a script
    └── TooManyFiles    this process cannot open another channel; the sandbox itself works
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

Shape = TypeVar("Shape")
Kind = Literal["render", "preview", "names", "preprocess", "postprocess", "probe"]
Layer = Literal["namespaces", "landlock", "seccomp"]

LAYERS: tuple[Layer, ...] = ("namespaces", "landlock", "seccomp")


class SandboxError(Exception):
    """The sandbox did not run, so nothing is known about the script."""


class SandboxRefused(SandboxError):
    pass


class SandboxBroken(SandboxError):
    pass


class TooManyFiles(SandboxBroken):
    pass


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits for one item.

    ``seconds``: processor time; elapsed time may be five times as long. ``memory_mb``: what a worker may add to the
    preloaded interpreter. ``output_kb``: units of 1024 characters that it may produce, beyond the size of its input.
    """

    seconds: float = 5.0
    memory_mb: int = 512
    output_kb: int = 256

    @property
    def output_characters(self) -> int:
        return self.output_kb * 1024

    @property
    def printed_characters(self) -> int:
        """A quarter of the output limit, because printed text is for reading and not data."""
        return self.output_characters // 4


@dataclass(frozen=True, slots=True)
class SandboxFailure:
    """Why an item (or the whole job) has no value.

    ``code``: ``syntax``, ``load``, ``exception``, ``undefined``, ``timeout``, ``memory``, ``output``, ``result``,
    ``killed``, ``protocol``. ``message`` quotes Python or describes the problem. ``line`` is the source's own.
    """

    code: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Job(Generic[Shape]):
    """A source text to prepare once and to run on items.

    ``shape`` is the required type of a value: any other reply of a worker is a ``protocol`` failure. ``each_alone``
    runs every item in its own worker (item mode).
    """

    kind: Kind
    source: str
    shape: type[Shape]
    options: dict[str, Any]
    each_alone: bool = False


class JobOutcome(msgspec.Struct, Generic[Shape], frozen=True):
    """One item's value, or why there is none; ``seconds``: processor time as reported by the worker."""

    value: Shape | None
    failure: SandboxFailure | None
    seconds: float = 0.0
