"""The reference pages in docs/ name every field that there is."""

from dataclasses import fields

import pytest

from rtbrain.decoder.bundle import Card
from rtbrain.parity import Certificate
from rtbrain.protocol import ENVELOPE, TOPICS
from tests.conftest import ROOT


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("topic", TOPICS)
def test_every_field_of_a_message_is_explained(topic: str) -> None:
    text = page("protocol.md")
    section = text.split(f"## `{topic}`")[1].split("\n## ")[0]
    missing = [each.name for each in fields(TOPICS[topic]) if f"`{each.name}`" not in section]
    assert not missing
    assert not [name for name in ENVELOPE if f"| `{name}` |" not in text]


def test_every_key_of_card_and_certificate_is_explained() -> None:
    card, certificate = page("bundles.md").split("## The certificate")
    assert not [each.name for each in fields(Card) if f"`{each.name}`" not in card]
    assert not [each.name for each in fields(Certificate) if f"`{each.name}`" not in certificate]


@pytest.mark.parametrize("name", ["bundles.md", "security.md", "protocol.md", "deployment.md"])
def test_links_lead_somewhere(name: str) -> None:
    targets = [part.split(")")[0] for part in page(name).split("](")[1:]]
    assert targets
    assert not [each for each in targets if not (ROOT / "docs" / each).exists()]
