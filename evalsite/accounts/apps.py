from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "evalsite.accounts"
    reconcilers = ("evalsite.accounts.services.delete_expired", "evalsite.api.replies.delete_old")

    def ready(self) -> None:
        from evalsite import api

        api.modules.append("evalsite.accounts.api")
