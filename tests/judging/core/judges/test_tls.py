import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from judging.core.judges.scripted import ScriptedJudge
from tests.judging.core.judges.helpers import ask_once, failure_of


def self_signed() -> tuple[bytes, bytes]:
    """A self-signed certificate for 127.0.0.1 and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a house of its own")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), secret


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A scripted judge with an untrusted certificate; yields its URL and the certificate (PEM)."""
    certificate, key = self_signed()
    chain = tmp_path / "chain.pem"
    chain.write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain)
    with ScriptedJudge("[[7]]", tls=context) as judge:
        yield judge.url, certificate.decode()


def test_an_unknown_authority_is_refused(secured: tuple[str, str]) -> None:
    assert failure_of(secured[0]).code == "certificate"


def test_an_own_authority_is_trusted(secured: tuple[str, str]) -> None:
    assert ask_once(secured[0], ca_pem=secured[1]).content == "[[7]]"
