"""manage.py evaluate: run a complete evaluation without a browser, with a worker in this process."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation

from datasets.core.kinds import COMPARISON
from datasets.models import Candidate
from evalsite.accounts.models import Project
from evalsite.command_line import PROGRAM
from evalsite.rounding import fixed, significant
from evalsite.storage import data_dir
from evalsite.tasks import workers
from evalsite.terminal import terminal_language
from judging.core.judges.client import RetryPolicy
from judging.core.metric_definition import MetricDefinition
from judging.core.reading.reasons import NOTHING_OFFERED
from judging.core.requirements import RequirementError, decide, exit_status, parse_requirement
from judging.engine.reconcile import free_dead_leases
from judging.filters.counts import counts_in_force, unscored_groups
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    CannotStart,
    add_json_option,
    json_line,
    own_project,
    paste_hints,
    project_called,
    read_metrics,
    refusals,
    run_named,
    upload,
)
from judging.management.working import (
    RETRY_POLICY,
    ProgressLine,
    judge_until_finished,
    refuse_missing_keys,
    why_stopped,
)
from judging.messages import reason_sentence
from judging.records.definitions import definitions_now
from judging.records.models import JudgementState, Run, RunState
from judging.reports.ci import CiOptions, ci_files
from judging.reports.services import report_document
from judging.runs.selectors import find_run
from judging.runs.services import ChosenMetric, RunOptions, refuse_broken_scripts, run_create, run_resume
from judging.sandboxes import start_early
from judging.transfer.export.files import jsonl_lines, write_lines
from judging.trust.selectors import licence_in_force, projects_with_licence


class Command(BaseCommand):
    help = (
        "Upload FILE, judge it with the metrics of a YAML file, and write judgements.jsonl and report.json."
    )

    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--metrics", type=Path, metavar="YAML", help="the metrics file")
        parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder for the results")
        parser.add_argument("--name", default="", help="the run's name, unique in DATA_DIR")
        parser.add_argument(
            "--project",
            metavar="SLUG",
            help="the run's project, whose licences of judges and data sets count; command-line if not given",
        )
        parser.add_argument(
            "--leave-out-unreadable",
            action="store_true",
            help="leave out rows whose rubric no checklist can be judged by",
        )
        parser.add_argument("--resume", metavar="RUN", help="resume a stopped run, by name or ID")
        add_ci_options(parser)
        add_json_option(parser)

    def handle(self, *, out: Path, **options: Any) -> None:
        with refusals():
            refuse_wrong_usage(options)
        start_early()
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        data_dir.prepare()
        with refusals():
            out.mkdir(parents=True, exist_ok=True)
            if options["resume"]:
                run = resume_run(options["resume"])
            else:
                run = start_run(
                    options["file"],
                    options["metrics"],
                    options["name"],
                    leave_out=options["leave_out_unreadable"],
                    project=project_called(options["project"]) if options["project"] else None,
                )
            baseline = run_named(options["baseline"]) if options["baseline"] else None
            with ProgressLine(run, shown=sys.stderr.isatty()):
                run, report = work_until_finished(run, out, stop)
        result = document(run, report)
        self.stdout.write(json_line(result) if options["json"] else in_words(run, result, out))
        if run.state != RunState.FINISHED:
            raise CommandError(
                f"Stopped{why_stopped(run)}. Nothing is lost: {PROGRAM} evaluate --resume {run.pk} --out {out}",
                returncode=HAS_ERRORS,
            )
        if options["ci"]:
            ci = CiOptions(options["require"], baseline, options["texts"])
            status = write_ci(run, options["ci"], ci)
        else:
            status = self._check(report, options["require"])
        if status:
            self.stderr.writelines(licensed_elsewhere(run, options["require"]))
            sys.exit(status)

    def _check(self, report: dict[str, Any], requirements: Sequence[str]) -> int:
        """Say of each requirement whether it is met. Returns the exit status; raises CommandError."""
        try:
            decisions = [decide(parse_requirement(text), report) for text in requirements]
        except RequirementError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from error
        for decision in decisions:
            self.stderr.write(decision.sentence)
        return exit_status(decisions)


def add_ci_options(parser: CommandParser) -> None:
    """The options of `--ci`."""
    parser.add_argument(
        "--ci",
        type=Path,
        metavar="DIR",
        help="also write report.html, report.json, junit.xml and summary.md there",
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="e.g. 'qwen3 correctness >= 7.5' (see report); the exit status is 3 if one is not met, 4 if "
        "one is undecided; may be repeated",
    )
    parser.add_argument("--baseline", metavar="RUN", help="with --ci, an earlier run to compare with")
    parser.add_argument(
        "--texts", action="store_true", help="with --ci, show answers; logs of such systems are often public"
    )


def write_ci(run: Run, folder: Path, options: CiOptions) -> int:
    """Write the files for continuous integration; returns the exit status. Raises CommandError."""
    try:
        files, status = ci_files(run, options)
    except RequirementError as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from error
    with refusals():
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return status


def refuse_wrong_usage(options: dict[str, Any]) -> None:
    """Raise CommandError for invalid arguments, OSError for files that can't be opened."""
    if not options["ci"] and (options["baseline"] or options["texts"]):
        raise CommandError("--baseline and --texts go with --ci DIR.", returncode=WRONG_USAGE)
    try:
        for text in options["require"]:
            parse_requirement(text)
    except RequirementError as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from error
    if options["resume"]:
        if any(options[name] for name in ("file", "metrics", "name", "project")):
            raise CommandError(
                "--resume can't be combined with FILE, --metrics, --name or --project.",
                returncode=WRONG_USAGE,
            )
        return
    if not options["file"] or not options["metrics"]:
        raise CommandError(f"Usage: {PROGRAM} evaluate FILE --metrics YAML --out DIR", returncode=WRONG_USAGE)
    for path in (options["file"], options["metrics"]):
        path.open("rb").close()


def licensed_elsewhere(run: Run, requirements: Sequence[str]) -> list[str]:
    """A line for each of the run's metrics that has no licence in its project but a valid one in another, if a licence
    is required: a licence counts in its project."""
    if all(parse_requirement(text).kind != "licence" for text in requirements):
        return []
    return [
        f"A judge of the same content as {definition.name} has a licence in another project: --project {slugs}\n"
        for definition in definitions_now(run).values()
        if licence_in_force(definition, run.project) is None
        and (slugs := " or ".join(projects_with_licence(definition)))
    ]


def start_run(
    file: Path, metrics_path: Path, name: str, *, leave_out: bool = False, project: Project | None = None
) -> Run:
    """Upload and import the file, and create a run for this process only. `project`: None for that of commands.

    Raises CannotStart.
    """
    if name and Run.objects.filter(name=name).exists():
        raise CannotStart(f"There is a run called {name} already; choose another --name, or --resume {name}.")
    metrics_file = read_metrics(metrics_path)
    with translation.override(terminal_language()):
        sys.stderr.writelines(
            f"{metrics_path}: {hint}\n" for metric in metrics_file.metrics for hint in paste_hints(metric)
        )
    refuse_missing_keys(metrics_path, metrics_file)
    try:
        refuse_broken_scripts(metrics_file.metrics)
        project = project or own_project()
        version = upload(project, file, metrics_file.data_name)
        return run_create(
            project=project,
            name=name,
            version=version,
            candidates=list(Candidate.uploaded.filter(version=version).order_by("pk")),
            metrics=[ChosenMetric(metric) for metric in metrics_file.metrics],
            candidate_models=metrics_file.candidates,
            user=None,
            only_worker=workers.owner(),
            options=RunOptions(leave_out_unreadable=leave_out),
        )
    except ValidationError as error:
        raise CannotStart("\n".join(error.messages)) from None


def resume_run(name_or_id: str) -> Run:
    """Resume a run in this process. Raises CannotStart."""
    run = find_run(name_or_id)
    if run is None:
        raise CannotStart(f"There is no run called {name_or_id} in this DATA_DIR.")
    if run.state == RunState.FINISHED:
        return run
    if run.only_worker and run.only_worker != workers.owner() and workers.is_alive(run.only_worker):
        raise CannotStart(f"Run {run.name} is being worked on by another process.")
    if not run_resume(run, only_worker=workers.owner()):
        Run.objects.filter(pk=run.pk).update(only_worker=workers.owner())
    free_dead_leases()
    run.refresh_from_db()
    return run


def work_until_finished(
    run: Run, out: Path, stop: threading.Event, policy: RetryPolicy = RETRY_POLICY
) -> tuple[Run, dict[str, Any]]:
    """`judge_until_finished`, then write both files. Returns the run and its report."""
    run = judge_until_finished(run, stop, policy)
    report = report_document(run)
    write_lines(jsonl_lines(run), out / "judgements.jsonl")
    text = json.dumps(report, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    write_lines([text.encode()], out / "report.json")
    return run, report


def document(run: Run, report: dict[str, Any]) -> dict[str, Any]:
    """The document of `evaluate --json` (docs/metrics-file.md)."""
    counts = counts_in_force(run)
    return {
        "run": run.pk,
        "judgements": run.total,
        "scored": counts["scored"],
        "no_score": counts["no_score"],
        "unparsed": counts["unparsed"],
        "unsettled": counts["unsettled"],
        "errors": counts["error"],
        "not_run": counts["not_run"],
        "report": report,
    }


def in_words(run: Run, result: dict[str, Any], out: Path) -> str:
    """A readable summary in a few lines."""
    lines = [
        f"Run {run.pk} ({run.name}): {run.total} judgements, {result['scored']} scored, {result['no_score']} without "
        f"a score, {result['unparsed']} unparsed, {result['unsettled']} unsettled, {result['errors']} errors, "
        f"{result['not_run']} not run."
    ]
    lines += [f"  {sentence}" for sentence in why_unscored(run)]
    lines += [f"  {headline['metric']}: {headline['text']}." for headline in result["report"]["headline"]]
    for candidate, metrics in result["report"]["candidates"].items():
        for metric, figures in metrics.items():
            mean, low, high = figures["mean"], figures["ci_low"], figures["ci_high"]
            shown = "no score" if mean is None else fixed(mean, 3)
            interval = "" if low is None else f"  (95 % interval {fixed(low, 3)} to {fixed(high, 3)})"
            lines.append(f"  {candidate} · {metric}: {shown}{interval}")
    lines.append(f"Written: {out / 'judgements.jsonl'} and {out / 'report.json'}")
    return "\n".join(lines)


def why_unscored(run: Run) -> list[str]:
    """For each reason why judgements have no score: how many, why, and the first line concerned."""
    definitions = definitions_now(run)
    states = {JudgementState.UNPARSED: "unparsed", JudgementState.ERROR: "errors"}
    sentences = []
    for group in unscored_groups(run):
        definition = definitions[group.metric]
        metric = f" ({definition.name})" if len(definitions) > 1 else ""
        why = _reason(group.reason, definition)
        sentences.append(
            f"{group.count} {states[JudgementState(group.state)]}: {why}; first: line {group.line}{metric}"
        )
    return sentences


def _reason(reason: str, definition: MetricDefinition) -> str:
    if reason == NOTHING_OFFERED:
        compares = definition.asks_for == COMPARISON
        return (
            f"no verdict such as {'[[A>B]]' if compares else f'[[{significant(definition.max_score, 6)}]]'}"
        )
    return reason_sentence(reason).rstrip(".。") or "no reason given"
