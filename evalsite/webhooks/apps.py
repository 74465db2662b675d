from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "evalsite.webhooks"
    label = "webhooks"
    jobs = {"deliver_webhooks": "evalsite.webhooks.delivery"}
    reconcilers = ("evalsite.webhooks.services.delete_old",)
    hooks = {
        "evalsite.accounts.audit_log.CODE_LABELS": ("evalsite.webhooks.kinds.CODE_LABELS",),
        "evalsite.storage.completeness.has_encrypted": ("evalsite.webhooks.services.any_encrypted",),
    }

    def ready(self) -> None:
        from evalsite import api

        api.modules.append("evalsite.webhooks.api")
