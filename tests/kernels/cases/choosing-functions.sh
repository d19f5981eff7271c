# Functions to trace come from a file of the user's; a filter chooses among them; a typo gets a suggestion.
printf 'vfs_read\nvfs_write\nvfs_open\n' >functions
expect '^kprobe:vfs_write$' "$ESPY" --traceable-functions functions -l 'kprobe:vfs_*'
expect '^Attached 3 probes$' "$ESPY" --traceable-functions functions -e 'kprobe:vfs_* { @ = count(); } interval:ms:100 { exit(); }' --probe-filter 'vfs_(read|write)|interval'
expect 'did you mean `fentry:vmlinux:vfs_read`' "$ESPY" -e 'fentry:vfs_raed { }'
