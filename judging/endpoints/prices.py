"""The vendors' list prices that could be read (prices.json): a new endpoint of such a model starts with them.

A list is `dated` as it says itself, or else on the day on which it was read. A price that depends on the hour or on the
length of the input is left out, since an endpoint has one; so is what vendors' pages contradict each other about.
docs/decisions/protocols.md says what was read.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec


class PriceList(msgspec.Struct, frozen=True):
    """A vendor's prices of a million input and output tokens by model ID, for the server `host`."""

    vendor: str
    host: str
    currency: str
    dated: date
    source: str
    models: dict[str, tuple[Decimal, Decimal]]


class ListPrice(NamedTuple):
    """What a million tokens of one model cost, and the list that says so."""

    input: Decimal
    output: Decimal
    of: PriceList


_decode = msgspec.json.Decoder(tuple[PriceList, ...]).decode
_LISTS = _decode(Path(__file__).with_name("prices.json").read_bytes())


def price_list_of(url: str) -> PriceList | None:
    """The price list of the server at an address; None without any."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return next((prices for prices in _LISTS if prices.host == host), None)


def list_price(url: str, model: str) -> ListPrice | None:
    """The list price of a model at an address; None if it is unknown."""
    prices = price_list_of(url)
    if prices is None or model not in prices.models:
        return None
    return ListPrice(*prices.models[model], prices)
