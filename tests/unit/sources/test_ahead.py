import threading

import pytest

from rtbrain.sources.ahead import ahead


def test_the_same_items_in_order():
    assert list(ahead(iter(range(1000)), depth=3)) == list(range(1000))
    assert list(ahead([])) == []


def test_items_are_made_before_they_are_asked_for():
    made, second = [], threading.Event()

    def items():
        for i in range(5):
            made.append(i)
            if i == 1:
                second.set()
            yield i

    stream = ahead(items())
    assert next(stream) == 0
    assert second.wait(20)
    stream.close()


def test_an_error_comes_in_its_place():
    def items():
        yield 1
        raise ValueError("the file is broken")

    stream = ahead(items())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_closing_early_ends_the_thread():
    stream = ahead(iter(range(10**9)))
    assert next(stream) == 0
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "read ahead"]
