from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "evalsite.accounts"
    reconcilers = ("evalsite.accounts.services.delete_expired",)
