# family.sh: a shell whose children start readers and end before them; and a reader that outlives everybody.
for child in 1 2 3; do
  (for reader in 1 2 3 4; do (sleep 0.1; exec dd if=/dev/zero of=/dev/null bs=1 count=10 status=none) & done) &
done
(sleep 0.6; exec dd if=/dev/zero of=/dev/null bs=1 count=5 status=none) &
sleep 0.3
