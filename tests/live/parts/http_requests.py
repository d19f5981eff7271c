"""http_requests.py LOG COUNT: requests /good of the HTTP server on the port that it wrote to LOG, COUNT times by four
clients at a time, and amid these once /bad/request, which is missing."""

import http.client
import pathlib
import re
import sys
import threading
import time

CLIENTS = 4


def port_of(log):
    for _ in range(3000):
        found = re.search(r" port (\d+) ", log.read_text() if log.exists() else "")
        if found:
            return int(found[1])
        time.sleep(0.01)
    sys.exit("no server")


def get(path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def client(number):
    for i in range(count // CLIENTS):
        if number == 0 and i == count // CLIENTS // 2:
            statuses.add(get("/bad/request"))
        statuses.add(get("/good"))


port = port_of(pathlib.Path(sys.argv[1]))
count = int(sys.argv[2])
statuses = set()
clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
sys.exit(statuses != {200, 404})
