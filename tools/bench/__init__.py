"""The benchmarks of docs/benchmarks.md. Most are ratios to a bare loop in the same run, to be machine-independent."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Figure:
    """One result line: the measured value, its target, and whether it is met."""

    name: str
    value: float
    target: str
    holds: bool
    detail: str

    @classmethod
    def at_most(cls, name: str, value: float, most: float, detail: str) -> Figure:
        return cls(name, value, f"<= {most:g}", value <= most, detail)

    @classmethod
    def at_least(cls, name: str, value: float, least: float, detail: str) -> Figure:
        return cls(name, value, f">= {least:g}", value >= least, detail)

    def __str__(self) -> str:
        mark = "ok    " if self.holds else "MISSED"
        return f"{mark} {self.name}: {self.value:.2f} (target {self.target}; {self.detail})"


def command_line(purpose: str | None) -> ArgumentParser:
    """A parser of a module's arguments whose help is the module's docstring."""
    return ArgumentParser(description=purpose, formatter_class=RawDescriptionHelpFormatter)


def python(*arguments: str, **environment: str) -> str:
    """Run Python in a separate process; return what it prints."""
    command, changed = [sys.executable, *arguments], {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=changed, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout
