from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "evalsite.accounts"

    def ready(self) -> None:
        from evalsite.accounts.services import delete_expired
        from evalsite.tasks import workers

        workers.cleanups.append(delete_expired)
