from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "evalsite.webhooks"
    label = "webhooks"
    jobs = {"deliver_webhooks": "evalsite.webhooks.delivery"}
    reconcilers = ("evalsite.webhooks.services.delete_old",)

    def ready(self) -> None:
        from evalsite import api
        from evalsite.storage import completeness
        from evalsite.webhooks.services import any_encrypted

        api.modules.append("evalsite.webhooks.api")
        completeness.has_encrypted.append(any_encrypted)
