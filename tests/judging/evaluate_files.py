"""Files for `manage.py evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

TEMPLATE = "[{{ data.id }}]\\n{{ response.content }}\\nScore: [[n]]"


def write_metrics(folder: Path, url: str, template: str = TEMPLATE) -> Path:
    path = folder / "metrics.yaml"
    path.write_text(
        "data_name: physics\nmetrics:\n- name: quality\n  pipeline:\n  - type: JUDGE_MODEL\n    judge_model:\n"
        f"      name: judge\n      source: URL\n      url: {url}\n      model: scripted\n"
        f'      api_key_env: JUDGE_KEY\n      judge_template_content: "{template}"\n'
    )
    return path


def write_rows(folder: Path, count: int) -> Path:
    path = folder / "rows.jsonl"
    with path.open("w") as file:
        for number in range(count):
            outputs = [{"model_name": "alpha", "responses": [{"content": f"answer {number}"}]}]
            row = {
                "id": str(number),
                "messages": [{"role": "user", "content": "?"}],
                "model_outputs": outputs,
            }
            file.write(json.dumps(row) + "\n")
    return path
