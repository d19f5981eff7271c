# The keys of a map are counted also where the stack has no room for further objects.
has for_each_map_elem || {
  expect 'this kernel lacks `for_each_map_elem` .Linux 5.13., which `len` of a map needs' "$ESPY" -e 'begin { @m[1] = 1; print(len(@m)); }'
  expect 'this kernel lacks `for_each_map_elem` .Linux 5.13., which `for` over a map needs' "$ESPY" -e 'begin { @m[1] = 1; for ($kv : @m) { } }'
  exit
}
expect '^3 20$' timeout 60 "$ESPY" -q -e 'begin {
  let $a : string[56] = "a"; let $b : string[56] = "b"; let $c : string[56] = "c"; let $d : string[56] = "d"; let $e : string[56] = "e";
  @m[1] = 1; @m[2] = 2; @m[3] = 3; @text[$a] = 1; @text[$b] = 1;
  for ($i : 0..4) { @pair[$a, $i] = 1; @pair[$b, $i] = 1; @pair[$c, $i] = 1; @pair[$d, $i] = 1; @pair[$e, $i] = 1; }
  printf("%d %d\n", len(@m), len(@pair));
  exit();
}'
