# A process whose memory is moved to a swap area in RAM, and which then wants it back.
# kernels: 6.12
tools=$(dirname -- "$ESPY")/../tools
modprobe brd rd_nr=1 rd_size=32768 || skip "no RAM disks (brd)"
mkswap /dev/ram0 >/dev/null
swapon /dev/ram0
trap 'swapoff /dev/ram0; rmmod brd' EXIT
cat >pages.py <<'P'
import mmap, resource
memory = mmap.mmap(-1, 4 << 20)
memory.write(b"x" * (4 << 20))
def major_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
before = major_faults()
while major_faults() < before + 100:
    memory.madvise(21)  # MADV_PAGEOUT
    for page in range(0, 4 << 20, 4096):
        memory[page]
P
expect '^@\[[0-9]+, python3\]: [0-9]+$' "$ESPY" "$tools/swapin.bt" -c "python3 pages.py"
