"""Model endpoints and their current use by all workers."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project, User
from judging.core.judges.protocols import CHAT


class Endpoint(models.Model):
    """A model server's URL with a model. Key, headers and proxy are encrypted and never shown."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="endpoints")
    name = models.CharField(max_length=200)
    url = models.CharField(max_length=1000)
    model = models.CharField(max_length=300)
    protocol = models.CharField(max_length=20, default=CHAT, help_text="how the server is asked")
    key_encrypted = models.TextField(blank=True, default="")
    headers_encrypted = models.TextField(blank=True, default="", help_text="JSON object")
    proxy_encrypted = models.TextField(blank=True, default="", help_text="may contain a password")
    ca_pem = models.TextField(blank=True, default="")
    params = models.JSONField(default=dict, help_text="generation parameters, sent with every request")
    rejected_params = models.JSONField(default=list, help_text="parameters that the server rejected")
    structured = models.CharField(
        max_length=12,
        blank=True,
        default="",
        help_text="the form of structured output that the server honours, none, or '' if not tested",
    )
    concurrency = models.PositiveIntegerField(default=16)
    requests_per_minute = models.PositiveIntegerField(null=True, help_text="null: unlimited")
    tokens_per_minute = models.PositiveIntegerField(null=True)
    input_price = models.DecimalField(
        max_digits=12, decimal_places=4, null=True, help_text="price of a million input tokens"
    )
    output_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    currency = models.CharField(max_length=8, blank=True, default="")
    priced_on = models.DateField(null=True, help_text="when its prices were entered or changed last")
    connect_seconds = models.PositiveIntegerField(default=10)
    idle_seconds = models.PositiveIntegerField(default=120)
    first_byte_seconds = models.PositiveIntegerField(default=120)
    total_seconds = models.PositiveIntegerField(default=600)
    probed_at = models.DateTimeField(null=True)
    probe = models.JSONField(default=dict, help_text="result of the last connection test")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True)
    draft = models.BooleanField(
        default=False, help_text="its first connection test failed, so it is not offered yet"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_once")]

    @property
    def is_priced(self) -> bool:
        """Whether it has a price, be it of input or output tokens."""
        return self.input_price is not None or self.output_price is not None

    @property
    def works(self) -> bool:
        """Whether the last connection test succeeded."""
        return bool(self.probe.get("ok"))


class EndpointLoad(models.Model):
    """The state of an endpoint shared by all workers (limiter.py). Times are the database's Unix seconds; 0: never."""

    key = models.CharField(max_length=1010, unique=True, help_text="an endpoint's number, or an address")
    limit = models.FloatField(
        null=True, help_text="calls at a time that the server bears; null: the endpoint's setting"
    )
    halved_at = models.FloatField(default=0)
    closed_until = models.FloatField(default=0, help_text="until when the server asked to wait")
    requests_at = models.FloatField(default=0, help_text="when a call may start by the requests per minute")
    tokens_at = models.FloatField(default=0, help_text="when a call may start by the tokens per minute")
    recent = models.JSONField(
        default=list, help_text="[request, whether its latest try was answered], the latest 40"
    )
    down_since = models.FloatField(default=0, help_text="since when it only gets probes; 0: it answers")
    problem = models.CharField(max_length=40, blank=True, default="", help_text="code of the last failure")
    problem_detail = models.TextField(blank=True, default="")
    problem_status = models.PositiveSmallIntegerField(null=True, help_text="its HTTP status, if any")
    workers = models.JSONField(
        default=dict, help_text="{owner: [last heartbeat, calls it may have in flight, calls it claims]}"
    )
