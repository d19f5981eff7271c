# Not any function may be called, also where none may.
expect '^no$' "$ESPY" -e 'begin { if (kfunc_allowed("vfs_read")) { printf("yes\n"); } else { printf("no\n"); } }'
