"""References that are rated as answers keep the earlier turns of their rows (see datasets/versions/references.py)."""

import json
from typing import Any

from django.db import migrations

_BATCH = 500
EARLIER = "earlier_messages"


def add_turns(apps: Any, schema_editor: Any) -> None:
    """Hidden rows have the number of the row whose reference they hold as their line."""
    row_model, response_model = apps.get_model("datasets", "Row"), apps.get_model("datasets", "Response")
    hidden = row_model.objects.filter(version__number=0).order_by("pk").values_list("pk", "line")
    last = 0
    while part := list(hidden.filter(pk__gt=last)[:_BATCH]):
        last = part[-1][0]
        of_rows = {line: pk for pk, line in part}
        rows = row_model.objects.filter(pk__in=of_rows, version__format="legacy_jsonl")
        turns = {of_rows[pk]: _turns(raw) for pk, raw in rows.values_list("pk", "raw")}
        changed = []
        for response in response_model.objects.filter(row_id__in=[pk for pk in turns if turns[pk]]):
            response.raw = json.dumps({**json.loads(response.raw), EARLIER: turns[response.row_id]})
            changed.append(response)
        response_model.objects.bulk_update(changed, ["raw"])


def _turns(raw: str) -> list[dict[str, Any]]:
    """The messages before the last question of a legacy row; none where it is the first."""
    row = json.loads(raw)
    earlier = row["conversation"][:-1]
    system = row.get("system") or ""
    first = [{"role": "system", "content": system}] if earlier and system.strip() else []
    roles = (("user", "prompt"), ("assistant", "response"))
    return first + [{"role": role, "content": turn[key]} for turn in earlier for role, key in roles]


class Migration(migrations.Migration):
    dependencies = [("datasets", "0007_version_stopped_by")]

    operations = [migrations.RunPython(add_turns, migrations.RunPython.noop, elidable=True)]
