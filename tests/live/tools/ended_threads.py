"""ended_threads.py GO DONE: when GO is there, starts threads that end, and a child that ends and is not waited for.
Then the main thread and another one wait for ever, and the file DONE says so."""
import os
import sys
import threading
import time

go, done = sys.argv[1:]
while not os.path.exists(go):
    time.sleep(0.02)
for each in [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(5)]:
    each.start()
    each.join()
child = os.fork()
if child == 0:
    time.sleep(0.05)
    os._exit(0)
while open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
    time.sleep(0.02)
forever = threading.Thread(target=time.sleep, args=(10000,), daemon=True)
forever.start()
while open(f"/proc/self/task/{forever.native_id}/stat").read().rsplit(")", 1)[1].split()[0] != "S":
    time.sleep(0.02)
open(done, "w").close()
time.sleep(10000)
