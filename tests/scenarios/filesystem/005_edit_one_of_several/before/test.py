def one():
    assert ok


def two():
    assert ok
