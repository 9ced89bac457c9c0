"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does. The examples are the same in every run: a red test
# is due to a change. To try others: pytest --hypothesis-profile=default.
settings.register_profile("workbench", deadline=None, derandomize=True)
settings.load_profile("workbench")
