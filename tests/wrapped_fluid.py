"""What a testbed that wraps the fluid one shares with it."""


class WrappedFluid:
    """For a class with a `fluid` testbed, which it answers like but for `deploy`."""

    @property
    def kind(self):
        return self.fluid.kind

    @property
    def identity(self):
        return self.fluid.identity

    @property
    def clock(self):
        return self.fluid.clock

    def operators(self, query):
        return self.fluid.operators(query)
