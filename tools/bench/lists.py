"""Page times of the grid and the list of a large run: python -m tools.bench.lists [JUDGEMENTS [VISITS]]

The run has 5 candidates and 2 metrics of 3 judges each, one reply of about 200 characters per judgement, and rows with
custom fields in Chinese and English. Requests every page VISITS times without a network; prints median and 95th
percentile of the elapsed time and the median processor time, in ms. Uses DATABASE_URL, or SQLite in DATA_DIR or a
temporary folder; an existing run is reused.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

from tools.bench import command_line
from tools.bench.stored_runs import open_database, signed_in_client, stored_version

CANDIDATES, METRICS = 5, 2
_RAW = (
    '{"messages": [{"role": "user", "content": "Question %d: 第%d道题, which of these is right? %s"}], '
    '"category": "%s", "level": %d, "source": "book %d"}'
)
_FILLER = "An answer explains, in some sentences, what is asked and why. 回答说明理由。" * 6
_JUDGEMENTS = """
INSERT INTO judging_judgement (run_id, position, run_metric_id, row_id, candidate_id, response_id, repeat, attempt,
       current, state, value, score, reason, detail, scripts, verdicts, rules, checklist, flags, spread,
       seconds, finished_at)
SELECT %s, (a.position - 1) * 2 + m.number, m.id, a.row_id, a.candidate_id, a.id, 1, 1, %s,
       CASE WHEN a.position % 97 = 0 THEN 'unparsed' WHEN a.position % 211 = 0 THEN 'error' ELSE 'scored' END,
       CASE WHEN a.position % 97 = 0 OR a.position % 211 = 0 THEN NULL
            ELSE CAST(a.position * 7919 % 10 + 1 AS text) END,
       CASE WHEN a.position % 97 = 0 OR a.position % 211 = 0 THEN NULL ELSE a.position * 7919 % 10 + 1 END,
       CASE WHEN a.position % 97 = 0 THEN 'nothing_offered' WHEN a.position % 211 = 0 THEN 'rate_limited' ELSE '' END,
       '', '', '[{"judge":0,"repeat":0,"value":5,"reason":"","order":"first","flip":false}]', '', '',
       CASE WHEN a.position % 1009 = 0 THEN 'truncated' ELSE '' END,
       CASE WHEN a.position % 97 = 0 THEN NULL ELSE a.position * 31 % 90 / 10.0 END, a.position * 13 % 600 / 100.0, 1.0
  FROM (SELECT r.id, r.row_id, r.candidate_id, ROW_NUMBER() OVER (ORDER BY r.id) AS position
          FROM datasets_response r JOIN datasets_row w ON w.id = r.row_id WHERE w.version_id = %s) a,
       judging_runmetric m
 WHERE m.run_id = %s
"""
_REPLIES = """
INSERT INTO judging_judgereply (judgement_id, judge, repeat, swapped, criterion, request, content, extra, error, detail,
       calls, seconds)
SELECT id, 0, 0, %s, 0, '{}', 'The answer is right in most of its points, and one step is missing. 第' || position ||
       '条评语：推理基本正确，缺少一步。Score: [[' || COALESCE(value, '?') || ']]', '', '', '', '[]', 1.0
  FROM judging_judgement WHERE run_id = %s
"""
PAGES = {
    "first": {},
    "in the middle": {"after": "{half}.0~{half}"},
    "at the end": {"after": "{last}.0~{last}"},
    "backwards": {"sort": "-position", "after": "{half}.0~{half}"},
    "by score": {"sort": "-score"},
    "by score, deep": {"sort": "score", "after": "5.0~{half}"},
    "by time, deep": {"sort": "seconds", "after": "3.0~{half}"},
    "by last change": {"sort": "-changed"},
    "candidate, by score": {"candidate": "model 3", "sort": "-score"},
    "reason, by score": {"reason": "rate_limited", "sort": "-score"},
    "candidate": {"candidate": "model 3"},
    "candidate and metric, deep": {"candidate": "model 3", "metric": "style", "after": "{half}.0~{half}"},
    "scored, at the end": {"state": "scored", "after": "{last}.0~{last}"},
    "candidate and score": {"candidate": "model 3", "metric": "quality", "least": "9"},
    "errors": {"state": "error"},
    "errors, deep": {"state": "error", "after": "{half}.0~{half}"},
    "flag": {"flag": "truncated"},
    "judges apart": {"spread": "8"},
    "judges apart, by last change": {"spread": "8", "sort": "-changed"},
    "field": {"field": "category", "field_is": "数学"},
    "field, rare": {"field": "source", "field_is": "book 77"},
    "field, range": {"field": "level", "field_from": "3", "field_to": "4"},
    "question": {"question": "道题"},
    "question, rare": {"question": "第777道题"},
    "question, nowhere": {"question": "没有这样的题目"},
    "answer": {"q": "回答说明理由"},
    "answer, rare": {"q": "answer 777 "},
    "answer, nowhere": {"q": "这里没有这样的话"},
    "reply": {"reply": "推理基本正确"},
    "reply, nowhere": {"reply": "评语里没有的话"},
    "reply, by score, nowhere": {"reply": "评语里没有的话", "sort": "-score"},
}
MENUS = {name: PAGES[name] for name in ("first", "candidate and score", "errors", "flag", "question")}


def filled(judgements: int) -> Any:
    """Return the run, created on first use; build its search index if it is missing."""
    from datasets.versions import search
    from evalsite.tasks import jobs
    from judging.records.models import Run

    name = f"lists of {judgements}"
    run = Run.objects.filter(name=name).first() or _fill(name, judgements)
    index = search.open_index(run.version)
    if index is None:  # it is a file in DATA_DIR, which may not be the one the database was filled with
        jobs.request("index_version", run.version_id)
        jobs.run("index_version", run.version_id)
    else:
        index.close()
    return run


def _fill(name: str, judgements: int) -> Any:
    from django.db import connection, transaction

    with transaction.atomic():
        run = judged_run(name, _version(name, judgements // (CANDIDATES * METRICS)))
    with connection.cursor() as cursor:
        # as PostgreSQL's autovacuum would do soon
        cursor.execute("VACUUM (ANALYZE)" if connection.vendor == "postgresql" else "ANALYZE")
    return run


def judged_run(name: str, version: Any, **judge: Any) -> Any:
    """A finished run over all of the version's answers. `judge`: fields of each judge model's definition."""
    from django.db import connection
    from django.db.models import Count

    from judging.core.metric_definition import JudgeModel, MetricDefinition
    from judging.records.models import Run, RunMetric

    total = version.rows * CANDIDATES * METRICS
    project = version.dataset.project
    run = Run.objects.create(
        project=project, name=name, version=version, state="finished", total=total, rows=version.rows
    )
    for candidate in version.candidates.all():
        run.run_candidates.create(candidate=candidate)
    asked = {"url": "http://127.0.0.1:9/v1", "model": "m", "template": "{{ data.question }}"} | judge
    judges = tuple(JudgeModel(name=f"judge {n}", **asked) for n in range(3))
    for number, metric in enumerate(("quality", "style")):
        definition = MetricDefinition(name=metric, judges=judges).to_json()
        RunMetric.objects.create(run=run, number=number, name=metric, definition=definition)
    with connection.cursor() as cursor:
        cursor.execute(_JUDGEMENTS.replace(" % ", " %% "), [run.pk, True, version.pk, run.pk])
        cursor.execute(_REPLIES, [False, run.pk])
    states = dict(run.judgements.values_list("state").annotate(count=Count("*")).order_by())
    run.scored, run.unparsed, run.errors = (states.get(one, 0) for one in ("scored", "unparsed", "error"))
    run.save()
    return run


def _version(name: str, rows: int) -> Any:
    kinds = ("数学", "history", "coding", "写作")

    def raw(line: int) -> str:
        return _RAW % (line, line, "Say why. " * 20, kinds[line % 4], line % 10, line % 5000)

    def answer(line: int, model: str) -> str:
        return json.dumps({"content": f"Answer {line} of {model}. {_FILLER}"}, ensure_ascii=False)

    models = [f"model {n}" for n in range(1, CANDIDATES + 1)]
    version = stored_version(name, rows, models, raw=raw, answer=answer)
    version.fields_found = {"category": rows, "level": rows, "source": rows}
    version.save()
    return version


def visits(run: Any, times: int) -> dict[str, dict[str, float]]:
    """{view and page: median and 95th percentile of elapsed time, median processor time}, in ms."""
    from django.urls import reverse

    client, found = signed_in_client(), {}
    for view, pages in (("judgements", PAGES), ("items", PAGES), ("filter_menu", MENUS)):
        address = reverse(f"runs:{view}", args=(run.project.slug, run.pk))
        for name, parameters in pages.items():
            deep = {"half": str(run.total // 2), "last": str(run.total - 30)}
            asked = {key: value.format(**deep) for key, value in parameters.items()}
            client.get(address, asked)  # warm up: load the templates, fill the database's cache
            taken, cpu = [], []
            for _ in range(times):
                began, used = time.perf_counter(), time.process_time()
                answer = client.get(address, asked)
                taken.append((time.perf_counter() - began) * 1000)
                cpu.append((time.process_time() - used) * 1000)
                if answer.status_code != 200:
                    raise RuntimeError(f"{name} was answered with status {answer.status_code}")
            figures = {"median": statistics.median(taken), "p95": statistics.quantiles(taken, n=20)[18]}
            figures["cpu"] = statistics.median(cpu)  # of this process, not of a PostgreSQL server
            found[f"{view}: {name}"] = {key: round(value, 1) for key, value in figures.items()}
            print(f"{view}: {name}: {found[f'{view}: {name}']}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("judgements", nargs="?", type=int, default=1_000_000)
    parser.add_argument("visits", nargs="?", type=int, default=20)
    chosen = parser.parse_args()
    open_database()
    pages = visits(filled(chosen.judgements), chosen.visits)
    print(json.dumps({"load": os.getloadavg()[0], "pages": pages}, indent=1))


if __name__ == "__main__":
    main()
