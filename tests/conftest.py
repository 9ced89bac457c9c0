"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says nothing about the product, and differs with what else the machine does.
settings.register_profile("workbench", deadline=None)
settings.load_profile("workbench")
