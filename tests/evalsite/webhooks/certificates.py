"""A certificate authority of the tests, and servers' certificates from it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates for host names. `trusting`: the context of a client that trusts it and nobody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(
            self.key, "authority", x509.BasicConstraints(ca=True, path_length=None)
        )
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        self.trusting = ssl.create_default_context(cadata=pem)

    def server(self, host: str) -> ssl.SSLContext:
        """The context of a server that calls itself `host`."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(key, host, x509.SubjectAlternativeName([x509.DNSName(host)]))
        file = self.folder / f"{host}.pem"
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(
        self, key: ec.EllipticCurvePrivateKey, name: str, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=True)
        )
        return builder.sign(self.key, hashes.SHA256())
