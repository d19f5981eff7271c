"""Two ends of a TLS connection in one process, for tests: the client says "over the wire"."""
import ssl
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as directory:
    key, certificate = directory + "/key", directory + "/certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    for_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for_server.load_cert_chain(certificate, key)
for_client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
for_client.check_hostname, for_client.verify_mode = False, ssl.CERT_NONE
to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
server = for_server.wrap_bio(to_server, to_client, server_side=True)
client = for_client.wrap_bio(to_client, to_server)


def step(end):
    try:
        end.do_handshake()
        return True
    except ssl.SSLWantReadError:
        return False


while not all([step(client), step(server)]):
    pass
client.write(b"over the wire\n")
sys.exit(server.read() != b"over the wire\n")
