#!/usr/bin/env bash
# java.sh DIRECTORY SCRIPT: runs SCRIPT on a Java program before and after the JVM has written its perf map.
cd "$1" || exit
cat >Fib.java <<'JAVA'
public class Fib {
  static int of(int n) { return n < 2 ? n : of(n - 1) + of(n - 2); }
  public static void main(String[] arguments) {
    long sum = 0;
    for (int i = 0; ; ++i) {
      sum += of(27);
      if (i == 50) System.out.println("ready");
    }
  }
}
JAVA
javac Fib.java || exit
java -XX:+PreserveFramePointer Fib >ready &
jvm=$!
trap 'kill $jvm; rm -f /tmp/perf-$jvm.map' EXIT
until grep -q ready ready; do sleep 0.1; done
$ESPY -q -p $jvm "$2"
jcmd $jvm Compiler.perfmap >/dev/null
$ESPY -q -p $jvm "$2"
