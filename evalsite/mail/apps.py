from django.apps import AppConfig


class MailConfig(AppConfig):
    name = "evalsite.mail"
    label = "mail"
    jobs = {
        "send_mail": "evalsite.mail.outgoing",
        "mail_password_reset": "evalsite.mail.resets",
    }
    reconcilers = ("evalsite.mail.digests.send_due", "evalsite.mail.outgoing.delete_old")

    def ready(self) -> None:
        from evalsite.mail.outgoing import any_encrypted
        from evalsite.storage import completeness

        completeness.has_encrypted.append(any_encrypted)
