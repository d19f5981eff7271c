"""Five threads that wait, and the end of the process by one of them, with code 3."""
import os
import threading
import time

for _ in range(4):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=os._exit, args=(3,)).start()
time.sleep(60)
