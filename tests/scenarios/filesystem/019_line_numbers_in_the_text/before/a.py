import os


def run():
    pass
