// A library with a function that needs nothing of the library: it runs from anywhere that it is mapped.
int squared_leaf(int number) { return number * number; }
