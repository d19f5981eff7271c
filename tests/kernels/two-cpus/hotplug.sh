# A CPU that goes offline and comes back, or comes online during the run: the kernel leaves out its samples and events.
online=/sys/devices/system/cpu/cpu1/online
spin='t=$(($(date +%s) + 2)); while [ $(date +%s) -lt $t ]; do :; done'
missing='CPU 1 went offline or came online during the run'
expect '^@: [1-9]' "$ESPY" --strict -c "taskset -c 1 sh -c '$spin'" -e 'profile:hz:99 /cpu == 1/ { @ = count(); }'
! grep -q 'CPU 1 went' expect.out
for probe in profile:hz:99 software:page-faults:1; do
  echo 1 >$online
  expect "$missing" "$ESPY" --strict -c "sh -c 'echo 0 >$online; echo 1 >$online; sleep 0.3'" -e "$probe { @ = count(); }"
  echo 0 >$online
  expect "$missing" "$ESPY" --strict -c "sh -c 'echo 1 >$online; sleep 0.3'" -e "$probe { @ = count(); }"
done
# A recording keeps it.
echo 1 >$online
"$ESPY" -q --record recording -c "sh -c 'echo 0 >$online; echo 1 >$online; sleep 0.3'" -e "$probe { @ = count(); }"
expect "while the events were recorded: $missing" "$ESPY" --strict -i recording -e "$probe { @ = count(); }"
