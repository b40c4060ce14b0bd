"""A question of which it is in doubt whether it stands alone, where the same words were asked first thing."""

import uuid

from inference import embedding
from inference.cache import probe
from inference.cache.probe import Probe
from inference.models import Outcome, Scope

from .conftest import decided, stored, turns

PHONE = ("I want to buy the Nimbus X200 phone", "It has a bright screen and lasts two days.")
FERRY = ("Tell me about the ferry to Gotland", "It leaves from Nynäshamn twice a day.")
DOUBTFUL = "Can penguins fly?"
LEANING = "Is the battery replaceable?"


def read(scope: Scope, *texts: str) -> Probe:
    return probe.read(scope, uuid.uuid4(), turns(*texts))


def test_it_is_in_doubt(scope: Scope) -> None:
    """What the other tests here are about; fitted anew, another question may have to take its place."""
    found = read(scope, *PHONE, DOUBTFUL)
    assert found.dependent and found.alone_key
    assert found.alone_key == read(scope, DOUBTFUL).exact_key != found.exact_key
    assert not read(scope, *PHONE, LEANING).alone_key
    assert not read(scope, DOUBTFUL).alone_key


def test_served_where_the_same_words_were_asked_first_thing(scope: Scope) -> None:
    wording = stored(scope, DOUBTFUL, answer="No, but they swim very well.")
    found = decided(scope, *PHONE, DOUBTFUL)
    assert (found.outcome, found.layer) == (Outcome.HIT, "exact")
    assert found.served and found.served.wording == wording.pk
    assert "first thing" in found.reason


def test_its_own_history_goes_first(scope: Scope) -> None:
    stored(scope, DOUBTFUL, answer="No, but they swim very well.")
    here = stored(scope, *PHONE, DOUBTFUL, answer="No.")
    found = decided(scope, *PHONE, DOUBTFUL)
    assert found.served and found.served.wording == here.pk


def test_what_leans_is_not_looked_up_so(scope: Scope) -> None:
    stored(scope, LEANING, answer="That depends on the device.")
    assert decided(scope, *PHONE, LEANING).layer != "exact"


def test_what_was_asked_after_something_else_does_not_count(scope: Scope) -> None:
    """Words that only ever stood in conversations are not known to stand alone."""
    elsewhere = stored(scope, *FERRY, DOUBTFUL, answer="No, but they swim very well.")
    assert elsewhere.exact_key != read(scope, DOUBTFUL).exact_key
    assert decided(scope, *PHONE, DOUBTFUL).layer != "exact"


def test_without_an_embedder_words_decide_alone(scope: Scope, settings) -> None:
    with_vectors = read(scope, *PHONE, DOUBTFUL)
    settings.EMBEDDER = "none"
    assert embedding.embedder() is None
    without = read(scope, *PHONE, DOUBTFUL)
    assert without.dependent and without.exact_key == with_vectors.exact_key
    assert not without.alone_key
