"""Comments on an answer and a metric. Mentions (@name) notify members of the project who may read judgements."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.records.json_text import storable
from judging.records.models import Judgement
from judging.teamwork import inbox
from judging.teamwork.models import Comment

_MENTION = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")


class CommentChanged(Exception):
    """The comment was changed or deleted since the page was opened."""


def comments_of(judgement: Judgement) -> list[Comment]:
    """Comments on a judgement's answer and metric, oldest first."""
    comments = Comment.objects.filter(
        run=judgement.run_id, run_metric=judgement.run_metric_id, response=judgement.response_id
    )
    return list(comments.select_related("author").order_by("pk"))


def mentioned_in(text: str, among: list[User]) -> list[User]:
    """Users whose usernames are mentioned with @ in the text. Trailing punctuation is ignored."""
    names = {name.lower() for mention in _MENTION.findall(text) for name in (mention, mention.rstrip(".-+"))}
    return [user for user in among if user.username.lower() in names]


@transaction.atomic
def comment_add(*, judgement: Judgement, text: str, by: User) -> Comment:
    comment = Comment.objects.create(
        run=judgement.run,
        run_metric=judgement.run_metric,
        response_id=judgement.response_id,
        author=by,
        text=storable(text) or "",
    )
    _record(comment, Action.COMMENT_ADDED)
    return comment


@transaction.atomic
def comment_edit(*, comment: Comment, text: str, version: int) -> None:
    """Edit a comment. `version`: the version that the author edited. Raises CommentChanged if it is outdated."""
    changes = {"text": storable(text) or "", "version": version + 1, "edited_at": timezone.now()}
    if not Comment.objects.filter(pk=comment.pk, version=version).update(**changes):
        raise CommentChanged
    comment.refresh_from_db(fields=list(changes))
    _record(comment, Action.COMMENT_EDITED)


@transaction.atomic
def comment_delete(*, comment: Comment, by: User) -> None:
    """Delete a comment and its notices."""
    run = comment.run
    record(Action.COMMENT_DELETED, project=run.project, thing=run, by=by, comment=comment.pk)
    comment.delete()


def _record(comment: Comment, action: Action) -> None:
    run = comment.run
    mentioned = mentioned_in(comment.text, list(inbox.readers_of(run.project)))
    inbox.notify_mentioned(comment, mentioned)
    names = [user.username for user in mentioned]
    record(action, project=run.project, thing=run, by=comment.author, comment=comment.pk, mentions=names)
