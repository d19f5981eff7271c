int one;
int two three;
