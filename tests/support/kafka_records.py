"""Records as the Kafka client gives them."""


class Record:
    def __init__(self, partition, offset, error=None):
        self._place, self._error = (partition, offset), error

    def error(self):
        return self._error

    def partition(self):
        return self._place[0]

    def offset(self):
        return self._place[1]

    def key(self):
        return None

    def value(self):
        return b'{"order": %d}' % self._place[1]

    def headers(self):
        return None

    def timestamp(self):
        return 1, 1_780_000_000_000 + self._place[1]
