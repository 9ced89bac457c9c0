"""Topics outside of a query: a bounded sample as a data set, filling from a data set, and what brokers are asked."""
