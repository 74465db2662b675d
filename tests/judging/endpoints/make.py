"""The form of an endpoint as a browser sends it."""

from __future__ import annotations

FORM = {
    "name": "Judge",
    "url": "http://127.0.0.1:9/v1",
    "model": "judge-1",
    "key": "",
    "headers": "",
    "proxy": "",
    "ca_pem": "",
    "params": "",
    "concurrency": "8",
    "requests_per_minute": "600",
    "tokens_per_minute": "",
    "input_price": "0.5",
    "output_price": "",
    "currency": "usd",
    "connect_seconds": "10",
    "first_byte_seconds": "60",
    "idle_seconds": "60",
    "total_seconds": "300",
}
