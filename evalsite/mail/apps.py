from django.apps import AppConfig


class MailConfig(AppConfig):
    name = "evalsite.mail"
    label = "mail"
    jobs = {
        "send_mail": "evalsite.mail.outgoing",
        "mail_password_reset": "evalsite.mail.resets",
    }
    reconcilers = ("evalsite.mail.digests.send_due", "evalsite.mail.outgoing.delete_old")
    hooks = {"evalsite.storage.completeness.has_encrypted": ("evalsite.mail.outgoing.any_encrypted",)}
