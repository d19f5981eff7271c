# A walk over all tasks prints each, and ends by itself.
expect '^1 ' "$ESPY" -e 'iter:task { printf("%d %s\n", ctx.task.pid, ctx.task.comm); }'
! "$ESPY" -l 'iter:*' | grep -q task_vma ||
  expect '^@: [0-9]+' "$ESPY" -e 'iter:task_vma { @ = count(); }'
