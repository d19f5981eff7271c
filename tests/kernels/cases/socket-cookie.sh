# The number of a socket, given to it when it is first asked for.
expect '^true$|this kernel lacks the helper `get_socket_cookie` .Linux 5.12.' "$ESPY" -e 'fentry:tcp_connect { print(socket_cookie(args.sk) > 0); exit(); }' \
  -c "bash -c 'exec 3<>/dev/tcp/127.0.0.1/9'"
