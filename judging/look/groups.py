"""Changes to groups of notes. Groups are few and people work on them together, so each act names what it changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import F

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.look.models import GroupedNote, Look, Note, NoteGroup

MOST_GROUPS = 50


class GroupRefused(Exception):
    """The groups were not changed. `code`: name_taken, name_missing, gone, too_many, nothing_chosen, or changed (by
    somebody else meanwhile)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def group_create(
    *, look: Look, user: User, name: str, definition: str = "", notes: Collection[int] = ()
) -> NoteGroup:
    """A new group with these notes of the look. Raises GroupRefused."""
    name = " ".join(name.split())[:100]
    if not name:
        raise GroupRefused("name_missing")
    with transaction.atomic():
        _locked(look)
        groups = NoteGroup.objects.filter(look=look)
        if groups.filter(name=name).exists():
            raise GroupRefused("name_taken")
        if groups.count() >= MOST_GROUPS:
            raise GroupRefused("too_many")
        group = NoteGroup.objects.create(look=look, name=name, definition=definition, created_by=user)
        _add(group, notes)
        _record(look, user, "created", name)
    return group


def group_change(*, group: NoteGroup, user: User, name: str, definition: str, seen: int) -> NoteGroup:
    """Rename and define a group. Raises GroupRefused, with `changed` if somebody else did so since `seen`."""
    name = " ".join(name.split())[:100]
    if not name:
        raise GroupRefused("name_missing")
    with transaction.atomic():
        _locked(group.look)
        stored = NoteGroup.objects.filter(pk=group.pk).first()
        if stored is None:
            raise GroupRefused("gone")
        if (stored.name, stored.definition) == (name, definition):
            return stored
        if stored.edits != seen:
            raise GroupRefused("changed")
        if NoteGroup.objects.filter(look=group.look, name=name).exclude(pk=group.pk).exists():
            raise GroupRefused("name_taken")
        NoteGroup.objects.filter(pk=group.pk).update(name=name, definition=definition, edits=F("edits") + 1)
        _record(group.look, user, "changed", name)
        stored.refresh_from_db()
    return stored


def group_delete(*, group: NoteGroup, user: User) -> None:
    """Delete a group; its notes stay."""
    with transaction.atomic():
        _locked(group.look)
        NoteGroup.objects.filter(pk=group.pk).delete()
        _record(group.look, user, "deleted", group.name)


def group_merge(*, group: NoteGroup, into: NoteGroup, user: User) -> None:
    """Put a group's notes into another one and delete it; a definition that only it has is kept there."""
    if group.pk == into.pk:
        raise GroupRefused("nothing_chosen")
    with transaction.atomic():
        _locked(group.look)
        _add(into, GroupedNote.objects.filter(group=group).values_list("note", flat=True))
        if group.definition and not into.definition:
            NoteGroup.objects.filter(pk=into.pk).update(definition=group.definition, edits=F("edits") + 1)
        NoteGroup.objects.filter(pk=group.pk).delete()
        _record(group.look, user, "merged", group.name, into=into.name)


def notes_put(
    *, look: Look, user: User, chosen: Sequence[tuple[int, int]], into: NoteGroup | None, keep: bool = False
) -> int:
    """Put notes, as (note, group that shows it or 0), into a group, and take them out of the groups that show them
    unless `keep`. Without `into` they are only taken out. Returns the number of notes; raises GroupRefused."""
    if not chosen:
        raise GroupRefused("nothing_chosen")
    with transaction.atomic():
        _locked(look)
        if into is not None:
            if not NoteGroup.objects.filter(look=look, pk=into.pk).exists():
                raise GroupRefused("gone")
            _add(into, [note for note, _group in chosen])
        for note, group in chosen:
            if group and not keep and (into is None or group != into.pk):
                GroupedNote.objects.filter(group__look=look, group=group, note=note).delete()
        _record(look, user, "moved", into.name if into else "", notes=len(chosen))
    return len({note for note, _group in chosen})


def _locked(look: Look) -> None:
    """Those who change the groups of a look wait for each other."""
    Look.objects.select_for_update().get(pk=look.pk)


def _add(group: NoteGroup, notes: Collection[int]) -> None:
    own = Note.objects.filter(pk__in=list(notes), answer__look=group.look_id).values_list("pk", flat=True)
    GroupedNote.objects.bulk_create(
        [GroupedNote(group=group, note_id=note) for note in own], ignore_conflicts=True
    )


def _record(look: Look, user: User, act: str, group: str, **detail: object) -> None:
    record(
        Action.LOOK_GROUPED,
        project=look.project,
        thing=look,
        name=look.name,
        by=user,
        act=act,
        group=group,
        **detail,
    )
