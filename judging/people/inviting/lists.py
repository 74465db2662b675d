"""A pasted list of people becomes raters: members are added, others get a link for one person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from evalsite.accounts.models import Membership, Project, User
from evalsite.links import absolute_url
from evalsite.mail.models import MailAddress
from evalsite.mail.services import mail_invitation
from judging.core.people.invited import LONGEST, MOST_PEOPLE, Invited, WrongEntry, read_people
from judging.people.assignments import raters_add
from judging.people.inviting.links import PersonLink, person_links_create, study_links
from judging.people.models import Evaluation
from judging.people.selectors import possible_raters

State = Literal["new", "again", "member", "rater", "wrong"]
"""What becomes of a line: a link (`again`: a new one, because the first is not used yet), an addition, nothing because
the person is a rater here already, or nothing because of what is wrong."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the list, and what becomes of it; `why` is a sentence for a wrong one."""

    line: int
    label: str
    state: State
    user: User | None = None
    mail: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ListPreview:
    """The entries by line; `too_many`: nothing is made of a list that is too long."""

    entries: list[Entry]
    too_many: bool

    def of(self, *states: State) -> list[Entry]:
        return [entry for entry in self.entries if entry.state in states]

    @property
    def counts(self) -> Counter[str]:
        return Counter(entry.state for entry in self.entries)


@dataclass(frozen=True, slots=True)
class ListResult:
    """Who was added, and the links that were made, which nothing stores."""

    added: list[User]
    links: list[PersonLink]


def list_preview(evaluation: Evaluation, text: str) -> ListPreview:
    """What a pasted list would do. Accounts outside the project are not looked up: nobody learns who has one."""
    people, wrong = read_people(text)
    if len(people) > MOST_PEOPLE:
        return ListPreview([], too_many=True)
    find = _member_finder(evaluation.run.project)
    rates = set(possible_raters(evaluation.run.project).values_list("pk", flat=True))
    current = set(evaluation.raters.filter(left_at=None).values_list("user", flat=True))
    waiting = set(study_links(evaluation).filter(most_uses=None).values_list("note", flat=True))
    entries, lines = [_wrong(entry) for entry in wrong], dict[int, int]()
    for person in people:
        user = find(person)
        if user is None:
            state: State = "again" if person.label in waiting else "new"
            entries.append(Entry(person.line, person.label, state, mail=person.mail))
            continue
        entries.append(_of_member(person, user, user.pk in rates, user.pk in current, lines.get(user.pk, 0)))
        lines.setdefault(user.pk, person.line)
    return ListPreview(sorted(entries, key=lambda entry: entry.line), too_many=False)


def _of_member(person: Invited, user: User, rates: bool, current: bool, earlier: int) -> Entry:
    why = ""
    if earlier:
        why = _("The same person as on line %(line)s.") % {"line": earlier}
    elif not rates:
        why = _(
            "Is a member without the role rater. Someone who manages the project can give it under Members."
        )
    state: State = "wrong" if why else "rater" if current else "member"
    return Entry(person.line, person.label, state, user, why=why)


def _wrong(entry: WrongEntry) -> Entry:
    why = {
        "mail": _("This is not a mail address. Correct it, or leave it out."),
        "name": _("There is no name."),
        "long": _("Name and address are longer than %(most)s characters together.") % {"most": LONGEST},
        "twice": _("The same person as on line %(line)s. Add something if they are two.")
        % {"line": entry.first},
    }
    return Entry(entry.line, entry.text, "wrong", why=why[entry.why])


def _member_finder(project: Project) -> Callable[[Invited], User | None]:
    """Finds a member by confirmed mail address, by user name, or by a full name that only one has."""
    own = Q(pk__in=Membership.objects.filter(project=project).values("user"))
    own |= Q(pk__in=possible_raters(project).values("pk"))
    users = list(User.objects.filter(own, is_active=True))
    names = {user.username.casefold(): user for user in users}
    full = Counter(user.get_full_name().casefold() for user in users)
    unique = {name: user for user in users if full[name := user.get_full_name().casefold()] == 1 and name}
    mails = MailAddress.objects.filter(user__in=[user.pk for user in users]).exclude(address="")
    by_pk = {user.pk: user for user in users}
    addresses = {row.address.casefold(): by_pk[row.user_id] for row in mails}

    def find(person: Invited) -> User | None:
        mail, name = person.mail.casefold(), person.name.casefold()
        by_mail = addresses.get(mail) or names.get(mail) if mail else None
        return by_mail or names.get(name) or unique.get(name)

    return find


@transaction.atomic
def list_apply(*, evaluation: Evaluation, text: str, days: int, makes_links: bool, by: User) -> ListResult:
    """Add the members of a list, and with `makes_links` make a link for each of the others; wrong lines are left out.
    Links are mailed to confirmed addresses."""
    preview = list_preview(evaluation, text)
    users = [entry.user for entry in preview.of("member") if entry.user]
    raters_add(evaluation=evaluation, users=users, by=by)
    invited = preview.of("new", "again") if makes_links else []
    links = person_links_create(
        evaluation=evaluation, notes=[entry.label for entry in invited], days=days, by=by
    )
    if absolute_url("home"):
        for entry, link in zip(invited, links, strict=True):
            if entry.mail:
                mail_invitation(link.invitation, link.secret, entry.mail)
    return ListResult(users, links)
