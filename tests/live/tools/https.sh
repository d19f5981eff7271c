# https.sh: a web server and a client of OpenSSL, on the loopback interface; the page is "over the wire".
cd "$(mktemp -d)" || exit 1
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key -out certificate 2>/dev/null
echo over the wire >page.txt
openssl s_server -accept 127.0.0.1:0 -key key -cert certificate -WWW >server 2>&1 &
until port=$(grep -oE '^ACCEPT .*:[0-9]+$' server | grep -oE '[0-9]+$'); do
  kill -0 $! || exit 1
  sleep 0.1
done
{
  printf 'GET /page.txt HTTP/1.0\r\n\r\n'
  until grep -q 'over the wire' answer; do sleep 0.1; done
} | openssl s_client -quiet -connect "127.0.0.1:$port" >answer 2>/dev/null
kill %1
rm -r "$PWD"
