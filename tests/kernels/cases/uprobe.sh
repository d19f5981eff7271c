# A function of a library, with a string argument.
expect 'HOME' "$ESPY" -c '/bin/bash -c "echo ~ >/dev/null"' -e 'uprobe:libc:getenv { print(str(arg0)); }' ||
  expect '@: [0-9]+' "$ESPY" -c '/bin/bash -c true' -e 'uprobe:libc:malloc { @ = count(); }'
expect '@: [0-9]+' "$ESPY" -c '/bin/bash -c true' -e 'uretprobe:libc:malloc { @ = count(); }'
