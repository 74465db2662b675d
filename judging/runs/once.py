"""A form that is sent twice, by two clicks or a retry, makes one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils.translation import gettext as _

Made = TypeVar("Made")


def made_once(form: forms.Form, make: Callable[[], Made], earlier: Callable[[], Made | None]) -> Made | None:
    """What `make` makes; where its name is taken, the `earlier` one of the same form. None: the form says why."""
    try:
        return make()
    except IntegrityError:
        found = earlier()
        if found is None:
            form.add_error("name", _("A run with this name already exists. Choose another name."))
        return found
    except ValidationError as error:
        form.add_error(None, error)
        return None
