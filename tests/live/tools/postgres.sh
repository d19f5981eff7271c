#!/bin/bash
# postgres.sh TOOL: runs a tool while a PostgreSQL server of its own answers queries: 11 short ones, and one that sleeps 0.3 s. The
# options of the tool are in $OPTIONS. Without TOOL it tells whether there is a server that it can start.
server=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
[ -x "$server/postgres" ] && readelf -n "$server/postgres" | grep -q query__start && id postgres >/dev/null || exit 1
[ $# = 1 ] || exit 0
data=$(mktemp -d)
chown postgres "$data"
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
cd "$data" || exit 1
as "$server/initdb" -D "$data/db" -N >/dev/null 2>&1 || exit 1
setpriv --reuid=postgres --regid=postgres --clear-groups "$server/postgres" -D "$data/db" -k "$data" -c listen_addresses= -F >"$data/log" 2>&1 &
postgres=$!
until [ -S "$data/.s.PGSQL.5432" ] && as psql -h "$data" -qc 'select 1' postgres >/dev/null 2>&1; do
  kill -0 $postgres || exit 1
  sleep 0.1
done
cd - >/dev/null || exit 1
{
  for n in 1 2 3 4 5 6 7 8 9 10 11; do echo "select $n as espy_query;"; done
  echo "select pg_sleep(0.3), 'espy slow query';"
} >"$data/queries"
chmod a+r "$data/queries"
# shellcheck disable=SC2086  # several options
"$ESPY" "$1" -c "setpriv --reuid=postgres --regid=postgres --clear-groups psql -h $data -qf $data/queries -o /dev/null postgres" -- $OPTIONS
kill -INT $postgres
wait $postgres 2>/dev/null
rm -r "$data"
