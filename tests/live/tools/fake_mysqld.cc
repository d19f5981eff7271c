// A program with the function of MariaDB that answers a query, and the one of MySQL, for beside.sh.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

class THD;
struct COM_DATA {
  const char* query;
  unsigned length;
};
enum enum_server_command { COM_SLEEP, COM_QUERY = 3, COM_PING = 14 };

__attribute__((noinline)) bool dispatch_command(enum_server_command command, THD*, char* packet, unsigned, bool) {
  if (command == COM_QUERY) usleep(strncmp(packet, "slow", 4) == 0 ? 200000 : 100);
  return false;
}
__attribute__((noinline)) bool dispatch_command(THD*, const COM_DATA* data, enum_server_command command) {
  if (command == COM_QUERY) usleep(strncmp(data->query, "slow", 4) == 0 ? 200000 : 100);
  return false;
}

int main(int, char** words) {
  chdir(words[1]);
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (access("go", F_OK) != 0) usleep(50000);
  char slow[] = "slow maria, and what is behind it", fast[] = "fast maria";
  COM_DATA data = {"slow mysql, and what is behind it", 10};
  dispatch_command(COM_QUERY, nullptr, slow, 10, false);
  dispatch_command(COM_QUERY, nullptr, fast, 10, false);
  dispatch_command(COM_PING, nullptr, slow, 0, false);
  dispatch_command(nullptr, &data, COM_QUERY);
  close(open("done", O_CREAT | O_WRONLY, 0600));
  sleep(60);
}
