"""Forms of a watch: beginning it, its schedule and its ceilings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judging.core.statistics.watch import FEWEST_SENTINELS, MOST_SENTINELS
from judging.engine.budget import MILLION
from judging.trust.watch.services import schedule_clean

MOST_CALLS = 2_000_000_000


class ScheduleForm(forms.Form):
    """When checks are made."""

    schedule = forms.CharField(label=gettext_lazy("Schedule"), required=False, max_length=200)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["schedule"].help_text = _(
            "Five cron fields in the zone %(zone)s, such as “0 3 * * *”; hourly at most. Empty: after runs of the "
            "metric."
        ) % {"zone": settings.TIME_ZONE}

    def clean_schedule(self) -> str:
        return schedule_clean(self.cleaned_data["schedule"])


class CeilingsForm(forms.Form):
    """What a month may cost."""

    calls = forms.IntegerField(
        label=gettext_lazy("Calls a month, at most"), min_value=1, max_value=MOST_CALLS
    )
    money = forms.DecimalField(
        label=gettext_lazy("Money a month, at most"),
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=4,
    )

    def __init__(self, *args: Any, currency: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        if currency:
            self.fields["money"].help_text = _("In %(currency)s.") % {"currency": currency}
        else:
            del self.fields["money"]

    @property
    def millionths(self) -> int | None:
        """The money, None for no limit."""
        money = self.cleaned_data.get("money")
        return None if money is None else int(money * MILLION)


class BeginForm(ScheduleForm):
    """How many sentinels are drawn, and when checks are made."""

    sentinels = forms.IntegerField(
        label=gettext_lazy("Sentinel answers"),
        min_value=FEWEST_SENTINELS,
        max_value=MOST_SENTINELS,
        help_text=gettext_lazy("30 to 100, drawn evenly from the opened test."),
    )
    field_order = ("sentinels", "schedule")
