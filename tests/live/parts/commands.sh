#!/usr/bin/env bash
# commands.sh: the words of the command line, in a directory where files have the names of commands and tools. ESPY is
# espy, SCRATCH an empty directory.
cd "$SCRATCH" || exit 1
status() { echo "status $?"; }

for name in opensnoop trace help mine; do echo 'begin { print("a file"); exit(); }' >$name; done
echo "--- files"
$ESPY opensnoop --help | head -1
$ESPY help trace | head -1
$ESPY -q ./opensnoop
$ESPY -q mine
$ESPY -q run opensnoop
rm opensnoop trace help mine

echo "--- help"
$ESPY | head -1
for words in 'help trace' 'trace --help' '--help trace' 'trace -h f'; do $ESPY $words | cksum; done | sort -u | wc -l
$ESPY help options output | head -1
$ESPY help target | head -1
$ESPY help nosuch 2>&1; status
$ESPY help trce 2>&1

echo "--- mistakes"
$ESPY 'begin { exit(); }' 2>&1
$ESPY opensnop 2>&1
$ESPY ./nosuch.bt 2>&1; status
$ESPY -n 5 -e 'begin { }' 2>&1
$ESPY record 2>&1
echo 'begin { }' | $ESPY 2>&1 >/dev/null

echo "--- tools"
$ESPY tools | grep -c '^  '
$ESPY tools dirty pages
$ESPY tools --show opensnoop | head -2
$ESPY tools nosuchtool 2>&1; status
$ESPY opensnoop -p 4194304 2>&1 | head -1
$ESPY runqlat 1s 2>&1
$ESPY opensnoop --faild 2>&1
$ESPY killsnoop --signal=SIGUSR1 2>&1
$ESPY opensnoop -f flame 2>&1
echo 'begin { print(getopt("n", 1)); print($1); exit(); }' >options.bt
$ESPY -q options.bt -- --n 5 7
$ESPY -q options.bt -- --n=a 2>&1
exit 0
