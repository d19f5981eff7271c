# recent(): loops over its values, also where the kernel does not bound loops; values, snapshots and lengths.
has atomic_fetch || {
  expect 'this kernel lacks `atomic_fetch` .Linux 5.12., which `recent` needs' "$ESPY" -e 'begin { @ = recent(1, 1); }'
  exit
}
expect '^1: \(7, x7\)$' timeout 60 "$ESPY" -q -e 'begin {
  $i = 0;
  while ($i < 8) { @last[1] = recent(2, ($i, $i == 7 ? "x7" : "y")); @log = recent(3, $i); $i++; }
  for ($v : @last[1]) { if ($v.0 == 7) { printf("%d: (%d, %s)\n", len(@last), $v.0, $v.1); } }
  exit();
}'
expect '^496$' timeout 60 "$ESPY" -q -e 'begin {
  $i = (uint64)0; $sum = (uint64)0;
  while ($i < 32) { @last[1] = recent(32, $i); $i++; }
  for ($v : @last[1]) { $sum += $v; }
  printf("%d\n", $sum);
  exit();
}'
expect '^\(6, y\),\(7, x7\),3$' sh -c 'timeout 60 "$1" -q -e "begin {
  \$i = 0;
  while (\$i < 8) { @last[1] = recent(2, (\$i, \$i == 7 ? \"x7\" : \"y\")); @log = recent(3, \$i); \$i++; }
  print(@last[1]); print(len(@log)); clear(@last); clear(@log); exit();
}" | grep . | paste -sd,' sh "$ESPY"
