"""How often a token may be used: a bucket in its row, so that all web processes count together."""

from __future__ import annotations

import math
import time

from django.db.models import ExpressionWrapper, F, FloatField, Value
from django.db.models.functions import Least

from evalsite.accounts.models import ApiToken

BURST = 100  # requests at once, after a pause
COUNTED = "evalsite.counted"  # in the WSGI environment of a request made for one that was counted; no client can set it


def seconds_to_wait(token: ApiToken, per_minute: int) -> int:
    """Take one request from the token's bucket. 0: it may be answered; else the whole seconds until the next one."""
    now, rate = time.time(), per_minute / 60
    refilled = ExpressionWrapper(
        Least(Value(float(BURST)), F("calls_left") + (Value(now) - F("calls_at")) * Value(rate)),
        output_field=FloatField(),
    )
    left = ApiToken.objects.filter(pk=token.pk).annotate(refilled=refilled).filter(refilled__gte=1)
    if left.update(calls_left=refilled - 1.0, calls_at=now):
        return 0
    return max(1, math.ceil(1 / rate))
