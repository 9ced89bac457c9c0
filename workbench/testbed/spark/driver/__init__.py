"""The driver process of a deployment: Spark's session, and the queries that run in it."""
