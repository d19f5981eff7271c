"""Runs statements on two connections, one of which is slow: it waits for 1.5 s."""

import sqlite3
import time

first, second = (sqlite3.connect(":memory:", isolation_level=None, cached_statements=0) for _ in range(2))
second.create_function("nap", 1, time.sleep)
for connection, name in [(first, "oranges"), (second, "pears")]:
    connection.execute(f"CREATE TABLE {name} (amount)")
for i in range(100):
    first.execute(f"INSERT INTO oranges VALUES ({i})")
    second.execute(f"INSERT INTO pears VALUES ({i})")
first.execute("SELECT sum(amount) FROM oranges").fetchall()
second.execute("SELECT nap(1.5) FROM pears LIMIT 1").fetchall()
first.execute("SELECT count() FROM oranges").fetchall()
