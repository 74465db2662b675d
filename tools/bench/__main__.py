"""`make bench`: print every figure with its target; exit with status 1 if any misses it."""

from __future__ import annotations

import sys
from itertools import chain

from tools.bench import command_line
from tools.bench.api import api_figures
from tools.bench.asking import asking_figures
from tools.bench.checklists import checklist_figures
from tools.bench.coverage import coverage_figures
from tools.bench.drill import drill_figures
from tools.bench.engine import figures
from tools.bench.importing import importing_figures
from tools.bench.reading import reading_figures
from tools.bench.replies import reply_figures
from tools.bench.report import report_figures
from tools.bench.rules import rules_figures
from tools.bench.sandbox import sandbox_figures
from tools.bench.scale import scale_figures
from tools.bench.start import start_figures
from tools.bench.study import study_figures
from tools.bench.tables import table_figures
from tools.bench.watching import watching_figures


def main() -> int:
    command_line(__doc__).parse_args()
    missed = 0
    for figure in chain(
        sandbox_figures(),
        reading_figures(),
        importing_figures(),
        table_figures(),
        rules_figures(),
        reply_figures(),
        report_figures(),
        coverage_figures(),
        asking_figures(),
        drill_figures(),
        watching_figures(),
        figures(),
        checklist_figures(),
        api_figures(),
        start_figures(),
        study_figures(),
        scale_figures(),
    ):
        missed += not figure.holds
        print(figure, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
