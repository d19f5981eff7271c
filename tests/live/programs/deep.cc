// A function that calls itself: deep DEPTH, 100 times by default, one within the other.
#include <cstdlib>

extern "C" __attribute__((noipa)) int descend(int depth) { return depth <= 1 ? 1 : descend(depth - 1) + 1; }

int main(int argc, char** argv) { return descend(argc > 1 ? std::atoi(argv[1]) : 100) == 0; }
