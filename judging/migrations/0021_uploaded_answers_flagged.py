"""Judgements of uploaded answers get the flags of empty and truncated answers, which only generated ones had."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from django.db import migrations
from django.db.models import Max, Q

BATCH = 2_000


def flags_of(answer: dict[str, Any]) -> list[str]:
    flags = []
    if not str(answer.get("content") or "").strip() and not answer.get("tool_calls"):
        flags.append("answer_empty")
    if answer.get("finish_reason") == "length":
        flags.append("answer_truncated")
    return flags


def flag(apps: Any, schema_editor: Any) -> None:
    Response = apps.get_model("datasets", "Response")
    Judgement = apps.get_model("judging", "Judgement")
    last = Response.objects.aggregate(last=Max("pk"))["last"] or 0
    for start in range(1, last + 1, BATCH):
        found = Response.objects.filter(pk__range=(start, start + BATCH - 1)).exclude(raw="")
        flagged = {
            pk: flags
            for pk, raw in found.values_list("pk", "raw").iterator()
            if (flags := flags_of(json.loads(raw)))
        }
        if flagged:
            flag_judgements(Judgement, flagged)


def flag_judgements(Judgement: Any, flagged: dict[int, list[str]]) -> None:
    alone = Judgement.objects.filter(response__in=flagged, rater=None, other_response=None)  # as its index is
    by_people = Judgement.objects.filter(run__kind="people").filter(
        Q(response__in=flagged) | Q(other_response__in=flagged)
    )
    changed = defaultdict(list)
    for found in (alone.exclude(state="not_run"), by_people):
        for pk, first, other, flags in found.values_list("pk", "response", "other_response", "flags"):
            had = [one for one in flags.split(",") if one]
            now = [*had, *flagged.get(first, ()), *flagged.get(other, ())]
            changed[",".join(dict.fromkeys(now))].append(pk)
    for flags, pks in changed.items():
        for at in range(0, len(pks), BATCH):
            Judgement.objects.filter(pk__in=pks[at : at + BATCH]).exclude(flags=flags).update(flags=flags)


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0007_version_stopped_by"),
        ("judging", "0020_overrides_carried_over"),
    ]

    operations = [migrations.RunPython(flag, migrations.RunPython.noop)]
