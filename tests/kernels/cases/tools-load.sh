# Every tool is fit for this kernel, or says that it needs a later one, or is named below with what is missing. Those from
# n on are in tools-load-rest.sh, as all take too long for one case.
# kernels: 6.1
kernel=$(uname -r | sed 's/[^0-9.].*//')
is_too_old_for() {  # TOOL: whether its head says "Needs Linux N", and this kernel is older
  local needed
  needed=$(sed -n 's,^// *, ,p' "$1" | tr -d '\n' | sed -nE 's/.*[Nn]eeds Linux ([0-9]+\.[0-9]+).*/\1/p')
  [ -n "$needed" ] && [ "$(printf '%s\n' "$needed" "$kernel" | sort -V | head -n 1)" != "$needed" ]
}
for tool in "$(dirname -- "$ESPY")"/../tools/[${first_letters:-a-m}]*.bt; do
  timeout "$seconds_per_command" "$ESPY" "$tool" -c true >out 2>&1 && grep -q '^Attached' out && continue
  is_too_old_for "$tool" && grep -qE '\[(kernel-lacks|no-such-probe|no-such-field|action-too-long)\]' out && continue
  case $(basename "$tool" .bt) in
    mdflush | xfsdist) grep -Eq '`(fentry:md_mod|kprobe:xfs_)[a-z_:]*` \[no-such-probe\]' out && continue ;;  # no such module
    scsilatency | nvmelatency) grep -Eq '`[a-z]*tracepoint:(scsi_dispatch|nvme:nvme_)[a-z_:]*` \[no-such-probe\]' out && continue ;;  # no such module
    bashreadline | sslsnoop) grep -Eq '/bin/bash|libssl' out && continue ;;                                   # no such file
    dbslower | dbstat | uflow | ugc | uthreads) grep -q 'no probe matches `[a-z]*:\*:' out && continue ;;          # no such process
    tcpcong) grep -q 'tcp_cong_state_set` \[no-such-probe\]' out && continue ;;                                  # before Linux 5.19
    kvmexit) grep -q 'tracepoint:kvm:kvm_exit` \[no-such-probe\]' out && continue ;;                            # no such module
  esac
  echo "$tool:"
  cat out
  exit 1
done
