"""The fields of a budget, in the form of a new run and where a paused one is given more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from judging.runs.budget import MILLION, Budget
from judging.runs.models import Run


class BudgetForm(forms.Form):
    """At most so much for a whole run."""

    budget_calls = forms.IntegerField(label=_("Max requests"), min_value=1, max_value=10**15, required=False)
    budget_tokens = forms.IntegerField(
        label=_("Max tokens"),
        min_value=1,
        max_value=10**15,
        required=False,
        help_text=_("Input and output combined."),
    )
    budget_money = forms.DecimalField(
        label=_("Max cost"),
        min_value=Decimal("0.01"),
        max_digits=12,
        decimal_places=4,
        required=False,
        help_text=_("In the currency of the endpoint prices."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )

    def budget(self) -> Budget:
        """After is_valid."""
        sent = self.cleaned_data
        money = sent["budget_money"]
        return Budget(
            sent["budget_calls"], sent["budget_tokens"], None if money is None else int(money * MILLION)
        )


def raising(run: Run, data: Any = None) -> BudgetForm:
    """The form in which a paused run's budget is raised, filled with what it has."""
    money = None if run.budget_money is None else Decimal(run.budget_money) / MILLION
    initial = {
        "budget_calls": run.budget_calls,
        "budget_tokens": run.budget_tokens,
        "budget_money": money.normalize() if money is not None else None,
    }
    return BudgetForm(data, initial=initial)
