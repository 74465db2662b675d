from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "evalsite.webhooks"
    label = "webhooks"
    jobs = {"deliver_webhooks": "evalsite.webhooks.delivery"}
    reconcilers = ("evalsite.webhooks.services.delete_old",)
    hooks = {"evalsite.storage.completeness.has_encrypted": ("evalsite.webhooks.services.any_encrypted",)}

    def ready(self) -> None:
        from evalsite import api

        api.modules.append("evalsite.webhooks.api")
