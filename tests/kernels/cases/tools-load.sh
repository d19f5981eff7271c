# Every tool is fit for this kernel, or is named below with what is missing. Those from n on are in tools-load-rest.sh, as
# all take too long for one case.
# kernels: 5.10 7.2
for tool in "$(dirname -- "$ESPY")"/../tools/[${first_letters:-a-m}]*.bt; do
  timeout "$seconds_per_command" "$ESPY" "$tool" -c true >out 2>&1 && grep -q '^Attached' out && continue
  case $(basename "$tool" .bt) in
    mdflush | xfsdist) grep -Eq '`(fentry:md_mod|kprobe:xfs_)[a-z_:]*` \[no-such-probe\]' out && continue ;;  # no such module
    bashreadline | sslsnoop) grep -Eq '/bin/bash|libssl' out && continue ;;                                   # no such file
    dbslower | dbstat | uflow | ugc | uthreads) grep -q 'no probe matches `[a-z]*:\*:' out && continue ;;          # no such process
    tcpcong) grep -q 'tcp_cong_state_set` \[no-such-probe\]' out && continue ;;                                  # before Linux 5.19
    kvmexit) grep -q 'tracepoint:kvm:kvm_exit` \[no-such-probe\]' out && continue ;;                            # no such module
  esac
  echo "$tool:"
  cat out
  exit 1
done
