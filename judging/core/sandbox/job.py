"""Jobs and outcomes of the sandbox, their limits, and the errors when it can't run.

SandboxError
├── SandboxRefused      this machine isolates less than the configured minimum
└── SandboxBroken       its process can't be started, or ended unexpectedly: no script is to blame
    └── TooManyFiles    this process can open no more channel; the sandbox itself is fine
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

Shape = TypeVar("Shape")
Kind = Literal["render", "preview", "names", "preprocess", "postprocess", "probe"]
Layer = Literal["namespaces", "landlock", "seccomp"]

LAYERS: tuple[Layer, ...] = ("namespaces", "landlock", "seccomp")


class SandboxError(Exception):
    """The sandbox did not run; nothing is known about the script."""


class SandboxRefused(SandboxError):
    pass


class SandboxBroken(SandboxError):
    pass


class TooManyFiles(SandboxBroken):
    pass


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Bounds on one item.

    ``seconds``: processor time, and five times as much elapsed time. ``memory_mb``: what a worker may add to the warm
    interpreter. ``output_kb``: thousands (1024) of characters it may produce, beyond the size of its own input.
    """

    seconds: float = 5.0
    memory_mb: int = 512
    output_kb: int = 256

    @property
    def output_characters(self) -> int:
        return self.output_kb * 1024

    @property
    def printed_characters(self) -> int:
        """Printed lines are for reading, not data: a quarter of the output is kept."""
        return self.output_characters // 4


@dataclass(frozen=True, slots=True)
class SandboxFailure:
    """Why an item (or the whole job) has no value.

    ``code``: ``syntax``, ``load``, ``exception``, ``undefined``, ``timeout``, ``memory``, ``output``, ``result``,
    ``killed``, ``protocol``. ``message`` quotes Python or says what was met. ``line`` is the source's own.
    """

    code: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Job(Generic[Shape]):
    """One source text to prepare once and to run over items.

    ``shape`` is the type that a value must have: whatever else a worker says is a ``protocol`` failure.
    ``each_alone`` gives every item a worker of its own (item mode).
    """

    kind: Kind
    source: str
    shape: type[Shape]
    options: dict[str, Any]
    each_alone: bool = False


class JobOutcome(msgspec.Struct, Generic[Shape], frozen=True):
    """One item's value, or why there is none; ``seconds`` of processor time as the worker counted them."""

    value: Shape | None
    failure: SandboxFailure | None
    seconds: float = 0.0
