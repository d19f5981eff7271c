// Calls of a method, 300 of them, objects, collections of garbage, and a thread with a name, for beside.sh.
import java.nio.file.*;

public class Calls {
  static class Part {}
  static int leaf(int n) { return n + 1; }
  public static void main(String[] words) throws Exception {
    Path place = Path.of(words[0]);
    Files.createFile(place.resolve("ready"));
    while (!Files.exists(place.resolve("go"))) Thread.sleep(50);
    int n = 0;
    for (int i = 0; i < 300; i++) n = leaf(n);
    Object[] parts = new Object[40];
    for (int i = 0; i < 40; i++) parts[i] = new Part();
    Thread thread = new Thread(() -> {}, "espy-worker-7");
    thread.start();
    thread.join();
    for (int i = 0; i < 3; i++) System.gc();
    Files.createFile(place.resolve("done"));
    Thread.sleep(60000);
  }
}
