"""Data sets, their immutable versions, and their contents.

The importer writes rows, responses and findings with plain SQL (see importing/tables.py); they never change afterwards.
"""

from __future__ import annotations

from pathlib import Path

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import Project, User
from evalsite.deletable import Deletable
from evalsite.storage import files


class Dataset(Deletable):
    """A named, versioned set of rows."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="datasets")
    name = models.CharField(max_length=200)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True)
    last_deleted = models.PositiveIntegerField(
        default=0, help_text="the highest number of a deleted version; numbers are never used again"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="dataset_name_once")]


WHOLE_OR_AGREED = Q(valid_rows=F("rows"), stopped_by="") | Q(left_out_at__isnull=False)
"""Selects versions without excluded rows, or where someone agreed to exclude them (see Version.usable)."""


class VersionState(models.TextChoices):
    WAITING = "waiting", _("waiting to be read")
    READING = "reading", _("being read")
    READY = "ready", _("ready")
    FAILED = "failed", _("could not be read")
    CANCELLED = "cancelled", _("cancelled")


class Version(Deletable):
    """One uploaded or repaired file and what was found in it. Never changes once it has been read.

    Version 0, which is never shown, holds the references of the others as answers (references.py).
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=VersionState.choices, default=VersionState.WAITING)
    origin = models.CharField(max_length=20, default="upload")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255, help_text="path below DATA_DIR")
    size = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, default="")
    parts = models.JSONField(default=list, help_text="the uploaded files it was joined from: see parts.py")
    chosen_format = models.CharField(
        max_length=20, blank=True, default="", help_text="as corrected by the uploader"
    )
    format = models.CharField(max_length=20, blank=True, default="")
    format_why = models.JSONField(default=dict)
    encoding = models.CharField(max_length=20, blank=True, default="")
    bytes_read = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    valid_rows = models.PositiveIntegerField(default=0)
    stopped_by = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="the finding that ended the reading before the end of its file, or of the file it was made from",
    )
    counts = models.JSONField(default=dict, help_text="{finding code: total number}")
    models_found = models.JSONField(default=dict, help_text="{model name: {rows, responses}}")
    fields_found = models.JSONField(default=dict, help_text="{custom field: rows}")
    problem = models.TextField(blank=True, default="", help_text="why reading failed")
    repairs = models.JSONField(
        default=list, help_text="repairs that make its file from the parent's, in order"
    )
    left_out_at = models.DateTimeField(null=True, help_text="when the invalid rows were excluded")
    left_out_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    cancel_requested = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]

    @property
    def path(self) -> Path:
        """Path of the original bytes on this machine; fetched first if they are stored elsewhere."""
        return files.local(self.stored_as)

    @property
    def file_is_kept(self) -> bool:
        return files.exists(self.stored_as)

    @property
    def to_be_repaired(self) -> bool:
        """Whether its file is not written yet: a worker makes it from the parent's, then reads it."""
        return bool(self.repairs) and not self.sha256

    @property
    def bad_rows(self) -> int:
        return self.rows - self.valid_rows

    @property
    def is_spread(self) -> bool:
        """Whether the file is JSON over several lines; its objects are counted but are not rows yet."""
        return bool(self.format_why.get("why") == "spread")

    @property
    def usable(self) -> bool:
        """Whether a run can use it. Excluding invalid rows and unread parts requires a person's agreement."""
        whole = not self.bad_rows and not self.stopped_by
        return (
            self.state == VersionState.READY
            and self.valid_rows > 0
            and (whole or self.left_out_at is not None)
        )


class Row(models.Model):
    """One line of the upload. `raw` is its JSON text without `model_outputs`; for an invalid row, the original text."""

    # No database constraint: it would be checked for every row, while the importer holds the version's lease.
    version = models.ForeignKey(
        Version, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="data_rows"
    )
    line = models.PositiveIntegerField()
    valid = models.BooleanField()
    raw = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "line"], name="row_line_once")]
        indexes = [models.Index(fields=["version", "line"], condition=Q(valid=False), name="row_bad")]


UPLOADED = "uploaded"
"""The source of candidates whose answers came with a version's file; other sources add answers later."""


class UploadedCandidates(models.Manager["Candidate"]):
    def get_queryset(self) -> models.QuerySet[Candidate]:
        return super().get_queryset().filter(source=UPLOADED)


class Candidate(models.Model):
    """A model under test, whose answers are in a version or were generated by a run over it."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="candidates")
    name = models.TextField()
    source = models.CharField(max_length=10, default=UPLOADED, help_text="or run<id>: generated by a run")
    rows = models.PositiveIntegerField(default=0)
    responses = models.PositiveIntegerField(default=0)

    objects = models.Manager()
    uploaded = UploadedCandidates()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "name", "source"], name="candidate_once")]


class UploadedResponses(models.Manager["Response"]):
    def get_queryset(self) -> models.QuerySet[Response]:
        return super().get_queryset().filter(candidate__source=UPLOADED)


class Response(models.Model):
    """One answer of one candidate to one row.

    `raw` is the JSON text of the response object, or '' while a run has not received it yet.
    """

    row = models.ForeignKey(
        Row, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="responses"
    )
    candidate = models.ForeignKey(
        Candidate, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="answers"
    )
    number = models.PositiveSmallIntegerField(help_text="from 1, within row and candidate")
    raw = models.TextField()

    objects = models.Manager()
    uploaded = UploadedResponses()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["row", "candidate", "number"], name="response_once")]


class StoredFinding(models.Model):
    """A problem found in a version; messages.py has its message in the user's language."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, db_index=False, related_name="findings")
    code = models.CharField(max_length=40)
    severity = models.CharField(max_length=7)
    line = models.PositiveIntegerField(null=True)
    column = models.PositiveIntegerField(null=True)
    path = models.TextField(blank=True, default="")
    repair = models.CharField(max_length=40, blank=True, default="")
    params = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["version", "code", "line"], name="finding_by_code")]


class FindingLines(models.Model):
    """All lines with findings of one code; `packed` is a block of core/line_set.py."""

    version = models.ForeignKey(
        Version, on_delete=models.CASCADE, db_index=False, related_name="finding_lines"
    )
    block = models.PositiveIntegerField()
    code = models.CharField(max_length=40)
    packed = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "block", "code"], name="finding_lines_once")
        ]


class DifferenceKind(models.TextChoices):
    ADDED = "added", _("added")
    REMOVED = "removed", _("removed")
    CHANGED = "changed", _("changed")


class Difference(models.Model):
    """The differences between two versions, computed once in the background, as versions never change."""

    old = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    new = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    ready = models.BooleanField(default=False)
    by_id = models.BooleanField(
        default=False, help_text="rows were matched by the field `id`, else by content"
    )
    same = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    removed = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["old", "new"], name="difference_once")]


class DifferenceRow(models.Model):
    """A row that differs between two versions; if it exists in only one, the other line is null."""

    difference = models.ForeignKey(
        Difference, on_delete=models.CASCADE, db_index=False, related_name="difference_rows"
    )
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=7, choices=DifferenceKind.choices)
    old_line = models.PositiveIntegerField(null=True)
    new_line = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["difference", "position"], name="difference_row_once")]
        indexes = [models.Index(fields=["difference", "kind", "position"], name="difference_by_kind")]


class SearchIndex(models.Model):
    """State of a version's search index; the index itself is a file built from the rows (see versions/search.py)."""

    class State(models.TextChoices):
        BUILDING = "building", _("being built")
        READY = "ready", _("ready")
        FAILED = "failed", _("could not be built")

    version = models.OneToOneField(
        Version, on_delete=models.CASCADE, primary_key=True, related_name="search_index"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.BUILDING)
    line = models.PositiveIntegerField(default=0, help_text="the last line that it includes")
    rows = models.PositiveIntegerField(default=0)
    size = models.BigIntegerField(default=0)


class Attachment(models.Model):
    """A file of answers matched to a version; it becomes a new version when someone confirms it."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting to be matched")
        MATCHED = "matched", _("matched")
        USED = "used", _("version created")
        DISCARDED = "discarded", _("discarded")
        FAILED = "failed", _("could not be matched")

    class Take(models.TextChoices):
        MATCHED = "matched", "once matched, unless it has to be confirmed which turns they follow"
        ALWAYS = "always", "once matched"

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="attachments")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255, help_text="path below DATA_DIR")
    size = models.BigIntegerField(default=0)
    model_name = models.TextField(
        blank=True, default="", help_text="the model whose answers a legacy file contains"
    )
    match_by = models.CharField(max_length=10, blank=True, default="")
    take = models.CharField(
        max_length=7,
        choices=Take.choices,
        blank=True,
        default="",
        help_text="whether the matched answers become a version without a person's decision",
    )
    report = models.JSONField(default=dict, help_text="an AttachReport as JSON")
    merged_as = models.CharField(max_length=255, blank=True, default="")
    unmatched_as = models.CharField(max_length=255, blank=True, default="")
    problem = models.JSONField(default=dict, help_text="why the file could not be matched: {code, params}")
    new_version = models.OneToOneField(
        Version, on_delete=models.SET_NULL, null=True, related_name="source_attachment"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)


class RowEdit(models.Model):
    """A person's edit of a row for the next version; nothing is overwritten, later edits have higher numbers.

    The last edit of a line counts, unless it was discarded or is already part of a version.
    """

    version = models.ForeignKey(Version, on_delete=models.CASCADE, db_index=False, related_name="row_edits")
    line = models.PositiveIntegerField()
    lines = models.PositiveIntegerField(
        default=1, help_text="number of the file's lines that the row takes; 0: the row is added at the end"
    )
    number = models.PositiveIntegerField(help_text="from 1, within version and line")
    before = models.TextField(help_text="the row in the file")
    text = models.TextField(help_text="'' deletes the row")
    discarded = models.BooleanField(default=False)
    new_version = models.ForeignKey(
        Version, on_delete=models.SET_NULL, null=True, related_name="source_edits"
    )
    author = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    edited_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "line", "number"], name="row_edit_once")]

    @property
    def is_open(self) -> bool:
        """Whether the edit, if it is the last one of its line, is not part of a version yet."""
        return not self.discarded and self.new_version_id is None

    @property
    def state(self) -> str:
        """The state on which a form is based; if it differs on submit, someone else made a change meanwhile."""
        return f"{self.number}-{self.new_version_id or ''}"


class FileImport(models.Model):
    """Another tool's files to become a version: a draft until `new_version` is set, then the result.

    `version` is the upload of a single file; several files uploaded together are stored only here.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="file_imports")
    version = models.OneToOneField(Version, on_delete=models.CASCADE, null=True, related_name="file_import")
    name = models.CharField(max_length=200, help_text="of the data set")
    name_chosen = models.BooleanField(default=True, help_text="by the uploader, not taken from the file")
    files = models.JSONField(default=list, help_text="[{name, stored_as, size, sha256}] in order")
    source = models.CharField(max_length=40, help_text="a format name of core/imports/registry.py")
    columns = models.TextField(
        blank=True, default="", help_text="column mapping of a table, as for --columns; '': the suggested one"
    )
    sheet = models.TextField(blank=True, default="")
    encoding = models.CharField(
        max_length=40, blank=True, default="", help_text="the codec that a user named; '': detected"
    )
    new_version = models.OneToOneField(
        Version, on_delete=models.SET_NULL, null=True, related_name="source_import"
    )
    notes = models.JSONField(default=list, help_text="[[target, name in the file]]")
    left_out = models.JSONField(
        default=list, help_text="[[file, line, sheet, code, detail]], limited for each code"
    )
    left_out_counts = models.JSONField(default=dict, help_text="{code: total number}")
    places = models.JSONField(default=dict, help_text="{names, stretches}: see core/imports/places.py")
    verdicts = models.PositiveIntegerField(default=0)
    verdicts_as = models.CharField(
        max_length=255, blank=True, default="", help_text="path of a results file below DATA_DIR"
    )
    problem = models.JSONField(default=dict, help_text="why the files cannot be read: {code, params}")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)


class SavedColumns(models.Model):
    """The column mapping of a table, remembered for tables with the same header."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_columns")
    header = models.CharField(max_length=64, help_text="SHA-256 of the names of the columns")
    columns = models.TextField(help_text="column mapping, as for --columns")
    saved_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "header"], name="saved_columns_once")]
