#!/usr/bin/env bash
# The work that tests/judges/tools traces.
cd "$(mktemp -d)"
dd if=/dev/zero of=w.dat bs=4096 count=50 conv=fsync 2>/dev/null
cat /etc/passwd /nonexistent/file >/dev/null 2>&1
sync
sleep 0.05
mkdir -p w.d/a; mv w.d/a w.d/b; rm -r w.d
sleep 100 & kill -TERM $!; wait $! 2>/dev/null
stat /etc/hostname >/dev/null
python3 - <<'P'
import socket,os,threading
s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(8)
for i in range(3):
    c=socket.create_connection(s.getsockname()); a,_=s.accept(); c.send(b"x"*100); a.recv(100); c.close(); a.close()
try: socket.create_connection(("127.0.0.1",1))
except OSError: pass
try: socket.getaddrinfo("localhost",80)
except OSError: pass
t=threading.Thread(target=lambda: None); t.start(); t.join()
os.setuid(0)
P
rm -f w.dat
rmdir "$PWD"
