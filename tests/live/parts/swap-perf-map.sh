# swap-perf-map.sh KIND PID: replaces the perf map of a process of user 12345.
map=/tmp/perf-$2.map
case $1 in
  fifo) rm $map; mkfifo $map; chown 12345 $map ;;
  terabyte) truncate -s 1T $map ;;
  other) chown 54321 $map ;;
  root) chown 0 $map ;;
  hidden) chown 0 $map; chmod 600 $map ;;
  link) mv $map $map.hidden; chown 0 $map.hidden; chmod 600 $map.hidden; ln -s $map.hidden $map ;;
esac
