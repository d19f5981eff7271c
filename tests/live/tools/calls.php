<?php
// Calls of a function, 300 of them, and an exception, for beside.sh.
$place = $argv[1] . "/";
function espy_leaf($n) { return $n + 1; }
touch($place . "ready");
while (!file_exists($place . "go")) { clearstatcache(); usleep(50000); }
for ($i = 0; $i < 300; $i++) espy_leaf($i);
try { throw new Exception("one"); } catch (Exception $e) { }
touch($place . "done");
sleep(60);
